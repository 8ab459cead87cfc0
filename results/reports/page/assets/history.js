// What became of models over many runs: what has become worse, then series by series.
const SPANS = { 1: "1 week", 4: "4 weeks", 12: "12 weeks", ever: "ever" };
const KINDS = {
  worse: ["is worse", "It became worse beyond chance, and still is; eager's own changes aside.",
    (each) => each.is_lasting && each.direction === "worse"],
  better: ["is better", "It became better beyond chance, and still is; eager's own changes aside.",
    (each) => each.is_lasting && each.direction === "better"],
  changed: ["changed", "Whatever changed, also if it was undone.", () => true],
};

function pastLink(found) {
  return address(`past/${encodeURIComponent(`${found.suite}/${found.model}`)}`, {});
}

function sizeText(change) {
  if (change.ratio === null) return `${change.before} \u2192 ${change.after}`;
  const share = (change.ratio - 1) * 100;
  return `${share > 0 ? "+" : "\u2212"}${Math.abs(share).toFixed(1)} %`;
}

function changeText(change) {
  const chance = change.adjusted_p === null ? "" : `, adjusted p ${digits(change.adjusted_p, 2)}`;
  const size = change.ratio === null ? "" : ` (${sizeText(change)})`;
  return `${change.direction} ${change.at.slice(0, 10)}: ${change.before} \u2192 ${change.after}`
    + `${size}${chance}`;
}

function sinceTime(past, weeks) {
  return weeks === "ever" ? -Infinity : Date.parse(past.made_at) - Number(weeks) * 7 * DAY;
}

// The last change of some kind within some weeks; none of a series that has none.
function latest(past, found, kind, weeks) {
  const since = sinceTime(past, weeks);
  const own = found.changes.filter((each) => KINDS[kind][2](each) && Date.parse(each.at) >= since);
  return own[own.length - 1] || null;
}

function differenceTexts(change, most = Infinity) {
  const found = change.differences.map(([name, before, after]) =>
    `${name} ${before || "none"} \u2192 ${after || "none"}`);
  const more = found.length - most;
  return more > 0 ? [...found.slice(0, most), `and ${more} more`] : found;
}

function lastDay(past, found) {
  return past.runs[found.runs[found.runs.length - 1]].created_at.slice(0, 10);
}

function historyColumns(past) {
  const change = (row) => row.change;
  return [
    { key: "model", title: "model", doc: "Leads to its runs.", className: "name",
      value: (row) => row.found.model,
      cell: (row) => html("a", { href: pastLink(row.found) }, row.found.model) },
    { key: "suite", title: "suite", doc: "", className: "text wide",
      value: (row) => row.found.suite, cell: (row) => row.found.suite },
    { key: "arm", title: "backend", doc: "And the mode.", className: "text",
      value: (row) => `${row.found.arm} ${row.found.mode}`,
      cell: (row) => `${row.found.arm}, ${row.found.mode}` },
    { key: "metric", title: "metric", doc: "What is measured.", className: "text",
      value: (row) => row.found.metric, cell: (row) => row.found.metric.replaceAll("_", " ") },
    { key: "apart", title: "measured", doc: "In what it differs from other series of the same.",
      className: "reason wide", value: (row) => row.found.apart, cell: (row) => row.found.apart },
    { key: "runs", title: "runs", doc: "How many measured it.", className: "number wide", numeric: true,
      value: (row) => row.found.runs.length, cell: (row) => String(row.found.runs.length) },
    { key: "line", title: "over time", doc: "A line of all runs; changes are marked.",
      className: "line wide", value: () => null, cell: (row) => sparkline(past, row.found) },
    { key: "last", title: "last", doc: "In the last run that has it, with its interval.", className: "text wide",
      value: (row) => row.found.values[row.found.values.length - 1] ?? row.found.last,
      cell: (row) => [row.found.last, html("div", { class: "note" }, lastDay(past, row.found))] },
    { key: "size", title: "change", doc: "After over before.", className: "text", numeric: true,
      value: (row) => (change(row) && change(row).ratio ? Math.log(change(row).ratio) : null),
      cell: (row) => (change(row) ? html("span", { class: `category ${changeClass(change(row))}` },
        html("span", { class: "glyph", "aria-hidden": "true" },
          change(row).direction === "worse" ? "\u25bc" : "\u25b2"), ` ${sizeText(change(row))}`)
        : "") },
    { key: "when", title: "when", doc: "The first run after it (UTC).", className: "text",
      numeric: true, value: (row) => change(row) && change(row).at,
      cell: (row) => (change(row) ? change(row).at.slice(0, 10) : "") },
    { key: "with", title: "with it", doc: "What of the environment changed there.",
      className: "reason long wide", value: (row) => change(row) && differenceTexts(change(row)).join(", "),
      cell: (row) => (change(row) ? [change(row).by_eager && "eager changed, not the compiled code. ",
        differenceTexts(change(row), 2).join(", ")].filter(Boolean) : "") },
  ].filter((column) => column.key !== "apart" || past.series.some((each) => each.apart));
}

function historyTable(past, parameters) {
  const worst = past.series.some((each) => latest(past, each, "worse", "4"));
  const state = { q: "", show: "", weeks: "", sort: "", ...parameters };
  // An address may have been typed.
  if (!Object.hasOwn(KINDS, state.show) && state.show !== "all") state.show = worst ? "worse" : "all";
  if (!Object.hasOwn(SPANS, state.weeks)) state.weeks = "4";
  const place = html("div");
  const count = html("p", { class: "note count", role: "status" });
  const input = html("input", { type: "search", id: "filter", value: state.q,
    placeholder: "words; -word leaves out", autocomplete: "off", oninput: () => {
      state.q = input.value;
      update();
    } });
  let matching = [];
  const counted = (kind) => matching.filter((each) => latest(past, each, kind, state.weeks)).length;
  const chosen = (name, value) => () => { state[name] = value; update(); };
  const chips = [
    ...Object.entries(KINDS).map(([kind, [title, doc]]) => chip(
      () => `${title} ${counted(kind)}`, () => state.show === kind,
      chosen("show", kind), { worse: "is-slower", better: "is-faster" }[kind], doc)),
    chip(() => `all ${matching.length}`, () => state.show === "all", chosen("show", "all")),
  ];
  const spans = Object.entries(SPANS).map(([weeks, title]) =>
    chip(() => title, () => state.weeks === weeks, chosen("weeks", weeks)));
  function update() {
    replaceParameters(state);
    draw();
  }
  function draw() {
    matching = past.series.filter((each) => matches([each.model, each.suite, each.mode, each.arm,
      each.metric, each.configuration, each.apart].join(" "), state.q));
    const rows = matching.map((found) => ({ found,
      change: latest(past, found, state.show === "all" ? "changed" : state.show, state.weeks) }))
      .filter((row) => state.show === "all" || row.change);
    const since = state.show !== "all" && state.weeks !== "ever"
      && new Date(sinceTime(past, state.weeks)).toISOString().slice(0, 10);
    count.textContent = `${rows.length} of ${past.series.length} series`
      + `${since ? `; changes since ${since}` : ""}`;
    place.replaceChildren(rows.length ? sortableTable({ caption: "Series",
      columns: historyColumns(past), rows, order: state.sort || "-when",
      onOrder: (order) => { state.sort = order; replaceParameters(state); } })
      : html("p", { class: state.show === "worse" ? "good" : "missing" },
        state.show === "worse" ? "Nothing that is shown has become worse, and still is."
          : "There is no such series."));
    [...chips, ...spans].forEach((each) => each.refresh());
  }
  draw();
  return [html("div", { class: "controls" }, html("label", { for: "filter" }, "Filter"), input,
    html("div", { class: "chips", role: "group", "aria-label": "Show" },
      chips.map((each) => each.button)),
    html("div", { class: "chips", role: "group", "aria-label": "Within" }, "within",
      spans.map((each) => each.button))), count, place];
}

function historyView(data, parameters) {
  const past = data.history;
  const { runs } = past;
  if (!runs.length) return [heading(1, "History"), html("p", { class: "missing" }, "There is no run yet.")];
  return [
    heading(1, "History"),
    html("p", { class: "note" }, `${plural(runs.length, "run")}, `
      + `${runs[0].created_at.slice(0, 10)} to ${runs[runs.length - 1].created_at.slice(0, 10)}`),
    historyTable(past, parameters),
  ];
}

function changeList(past, found) {
  return found.changes.map((change) => html("li", { class: `category ${changeClass(change)}` },
    html("strong", {}, changeText(change)),
    html("div", { class: "note" }, "after ", runName(past, change.last_before), ", by ",
      runName(past, change.first_after), change.by_eager
        && "; eager itself changed there, and not the compiled code"),
    html("div", { class: "note" }, differenceTexts(change).join("; ")
      || "no difference of the environment is known")));
}

// Of a run that a file brought there are its rows alone.
function runName(past, number) {
  const id = past.runs[number].run_id;
  if (!DATA.home) return id;
  if (past.without_page.includes(number)) {
    return [id, html("span", { class: "note" }, " (from a file: no page)")];
  }
  return html("a", { href: `${DATA.home}run/${encodeURIComponent(id)}` }, id);
}

function runRow(past, found, place) {
  const run = past.runs[found.runs[place]];
  const { status, doubt } = markAt(found, place);
  return [runName(past, found.runs[place]), run.created_at.slice(0, 16).replace("T", " "),
    run.torch || missing(), status, valueText(found, place) || missing(),
    String(found.replicates[place]), doubt || ""];
}

function runTable(past, group) {
  const rows = group.flatMap((found) => found.runs.map((number, place) => ({ number, found, place })));
  rows.sort((one, other) => other.number - one.number);
  return html("details", { class: "box" }, html("summary", {}, `All ${plural(rows.length, "run")}`),
    plainTable(["run", "when (UTC)", "torch", "ended", "value", "n", "in doubt as"],
      rows.map((row) => runRow(past, row.found, row.place))));
}

function pastView(data, name) {
  const past = data.history;
  const own = past.series.filter((each) => `${each.suite}/${each.model}` === name);
  if (!own.length) return [heading(1, "No such model"), html("p", {}, `No run has ${name}.`)];
  const groups = new Map();
  for (const found of own) {
    const key = [found.metric, found.arm, found.mode, found.configuration].join("\n");
    groups.set(key, [...(groups.get(key) || []), found]);
  }
  const [{ suite, model }] = own;
  const names = [...new Set(past.series.map((each) => `${each.suite}/${each.model}`))];
  const beside = (step) => {
    const other = names[names.indexOf(name) + step];
    const found = past.series.find((each) => `${each.suite}/${each.model}` === other);
    return found ? html("a", { href: pastLink(found), rel: step > 0 ? "next" : "prev" },
      step > 0 ? `${found.model} \u2192` : `\u2190 ${found.model}`) : html("span");
  };
  const whole = isOfOneModel() ? `${data.home}history` : address("history", {});
  return [
    html("nav", { class: "beside", "aria-label": "Models" }, beside(-1),
      html("a", { href: whole, rel: "up" }, "all models"), beside(1)),
    heading(1, model),
    html("p", { class: "note" }, suite, data.home && !isOfOneModel() && [" \u00b7 ", html("a", { href:
      `${data.home}history/${encodeURIComponent(model)}#/past/${encodeURIComponent(name)}` },
    "all metrics of this model")]),
    [...groups.values()].map((group) => pastSection(past, group,
      [...groups.values()].some((other) => other !== group && isAlike(other[0], group[0])))),
  ];
}

// A server has a page of each model, too.
function isOfOneModel() {
  return Boolean(DATA.home) && window.location.pathname.startsWith(`${DATA.home}history/`);
}

function isAlike(one, other) {
  return ["metric", "arm", "mode"].every((name) => one[name] === other[name]);
}

function pastSection(past, group, isAmbiguous, title = null) {
  const [{ arm, mode, metric, configuration, unit }] = group;
  const isStatus = metric === "status";
  const hasValues = group.some((each) => each.values.some((value) => value !== null));
  const newest = group.reduce((one, other) =>
    (one.runs[one.runs.length - 1] > other.runs[other.runs.length - 1] ? one : other));
  return section(
    title || `${arm}, ${mode}: ${metric.replaceAll("_", " ")}${isAmbiguous ? `, ${configuration}` : ""}`,
    html("p", { class: "note" }, !isAmbiguous && `${configuration}; `,
      `last ${newest.last}, ${lastDay(past, newest)}`),
    isStatus ? html("figure", {}, statusChart(past, group))
      : hasValues && html("figure", {}, timeChart(past, group, unit)),
    group.length > 1 && html("div", {}, html("p", { class: "note" },
      "Measured in other ways or on other machines, so not one series:"),
    html("ul", {}, group.map((each, index) => html("li", {}, !isStatus && html("span", {
      class: `swatch arm-${(index + 1) % 8}`, "aria-hidden": "true" }),
    ` ${plural(each.runs.length, "run")} from `
      + `${past.runs[each.runs[0]].created_at.slice(0, 10)}: ${each.apart}`)))),
    group.some((each) => each.changes.length) && html("ul", { class: "looks" },
      group.map((each) => changeList(past, each))),
    runTable(past, group));
}

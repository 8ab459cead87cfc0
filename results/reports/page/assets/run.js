// A run: where it was measured, every model, and what its study adds.
function headline(run) {
  const facts = Object.fromEntries(run.facts);
  return [facts.machine, `torch ${facts.torch}`, `${facts.mode}, ${facts.dtype}, ${facts.device}`,
    `scale ${facts.scale}`, `began ${facts.began}`].join(" \u00b7 ");
}

// The arms of all cases, and what was planned and has no record.
function armRows(run) {
  const rows = run.part.arms.map((arm) => ({ ...arm, of: run.cases[arm.case] }));
  run.cases.forEach((found, index) => {
    if (found.status === "not run") {
      rows.push({ case: index, arm: "\u2013", status: "not run", of: found, marks: [],
        line: run.absent });
    }
  });
  return rows;
}

function figureColumn(key, title, doc, form, reason = () => null) {
  return { key, title, doc, numeric: true, className: "number wide", value: (row) => row[key],
    cell: (row) => (row[key] === null || row[key] === undefined
      ? missing(row.line ? CATEGORIES[category(row)][1] : reason(row)) : form(row[key])) };
}

function modelColumns(run, number, rows) {
  const domain = ratioDomain(rows.map((each) => each.speedup).filter(Boolean));
  const names = Object.keys(CATEGORIES);
  const several = (value) => new Set(rows.map(value)).size > 1;
  const columns = [
    { key: "model", title: "model", doc: "Of the suite; its page has all that is known.",
      className: "text name", value: (row) => row.of.label,
      cell: (row) => html("a", { href: modelLink(number, row.of) }, row.of.label) },
    new Set(run.part.arms.map((each) => each.arm)).size > 1 && { key: "arm", title: "backend", doc: "What is compared with eager.",
      className: "text", value: (row) => row.arm, cell: (row) => row.arm },
    ...["mode", "dtype", "shapes", "suite"].map((name) => several((row) => row.of[name]) && {
      key: name, title: name, doc: "Of the case.", className: "text wide",
      value: (row) => row.of[name], cell: (row) => row.of[name] }),
    { key: "verdict", title: "verdict", doc: "Beyond chance and beyond 2 %; else how it ended.",
      className: "text", value: (row) => names.indexOf(category(row)),
      cell: (row) => categoryLabel(category(row),
        category(row) === "failed" ? row.status.replaceAll("_", " ") : category(row)) },
  ];
  if (run.part.is_timed) {
    columns.push(
      { key: "speedup", title: "speedup", doc: "Latency of eager over the arm's.", numeric: true,
        className: "number", value: (row) => row.speedup && row.speedup.value,
        cell: (row) => (row.speedup ? times(row.speedup.value) : missing("see interval")) },
      { key: "bar", title: "interval", numeric: true, className: "bars", head: ratioAxis(domain),
        doc: "The speedup with its 95 % interval, on a logarithmic axis. Sorts by the lower end.",
        value: (row) => row.speedup && row.speedup.low,
        cell: (row) => (row.speedup ? ratioBar(row.speedup, category(row), domain)
          : html("span", { class: "reason" }, row.line || row.reason || "not timed")) },
      figureColumn("eager_ms", "baseline (ms)", "Latency of a call in eager.", (each) => digits(each, 3)),
      figureColumn("latency_ms", "latency (ms)", "Of the arm.", (each) => digits(each, 3)),
      figureColumn("compile_s", "compile (s)", "Median of the compile times.",
        (each) => digits(each, 3)),
      figureColumn("memory_ratio", "memory", "Eager's memory over the arm's: above 1 it needs less.",
        (each) => times(each, 2), (row) => row.memory_reason),
    );
  } else {
    columns.push({ key: "line", title: "reason", doc: "Why it did not pass.", className: "reason",
      value: (row) => row.line, cell: (row) => row.line || "" });
  }
  const earlier = earlierOf(number);
  if (earlier) columns.push(earlierColumn(earlier));
  columns.push(
    figureColumn("graphs", "graphs", "That Dynamo captured.", String),
    figureColumn("breaks", "breaks", "Graph breaks.", String),
    !run.part.is_timed && figureColumn("max_error", "error", "Largest deviation from eager.",
      (each) => digits(each, 2)),
    { key: "marks", title: "marks", doc: "What to know of how it was measured.",
      className: "text wide", value: (row) => row.marks.join(", "),
      cell: (row) => row.marks.map((each) => html("span", { class: "mark" }, each)) },
  );
  return columns.filter(Boolean).filter((column) =>
    ["model", "verdict", "bar", "earlier"].includes(column.key) || rows.some((row) => {
      const value = column.value(row);
      return value !== null && value !== undefined && value !== "";
    }));
}

// A button that is pressed or not; `state` says so when it is drawn again.
function chip(text, isOn, onclick, className = "", doc = null) {
  const button = html("button", { type: "button", class: `chip ${className}`, title: doc, onclick });
  const refresh = () => {
    button.textContent = text();
    button.setAttribute("aria-pressed", String(isOn()));
  };
  return { button, refresh };
}

// The table of models with its filters. They are in the address, so that a view can be passed on.
function modelTable(run, number, parameters) {
  const rows = armRows(run);
  const arms = [...new Set(run.part.arms.map((each) => each.arm))];
  const state = { q: "", show: "", arm: "", sort: "", ...parameters };
  const place = html("div");
  const count = html("p", { class: "note count", role: "status" });
  const chips = html("div", { class: "chips", role: "group", "aria-label": "Show" });
  const input = html("input", { type: "search", id: "filter", value: state.q,
    placeholder: "words; -word leaves out", autocomplete: "off", oninput: () => {
      state.q = input.value;
      update();
    } });
  const columns = modelColumns(run, number, rows);
  const usual = run.part.is_timed ? "-speedup" : "verdict";
  const toggled = (name, value) => () => {
    state[name] = state[name] === value ? "" : value;
    update();
  };
  let ofArm = [];
  const counted = (name) => ofArm.filter((row) => category(row) === name).length;
  const all = [
    ...Object.keys(CATEGORIES).filter((name) => rows.some((row) => category(row) === name))
      .map((name) => chip(() => `${CATEGORIES[name][0]} ${name} ${counted(name)}`,
        () => state.show === name, toggled("show", name), categoryClass(name))),
    ...(arms.length > 1 ? arms : []).map((arm) =>
      chip(() => arm, () => state.arm === arm, toggled("arm", arm))),
  ];
  chips.append(...all.map((each) => each.button));
  function update() {
    replaceParameters(state);
    draw();
  }
  function draw() {
    const found = rows.filter((row) => matches(
      [row.of.label, row.of.suite, row.of.mode, row.arm, category(row), row.status, row.line || "",
        row.marks.join(" ")].join(" "), state.q));
    ofArm = found.filter((row) => !state.arm || row.arm === state.arm);
    const kept = ofArm.filter((row) => !state.show || category(row) === state.show);
    place.replaceChildren(sortableTable({
      caption: "Models", columns, rows: kept, order: state.sort || usual,
      onOrder: (order) => { state.sort = order; replaceParameters(state); },
      rowClass: (row) => (category(row) === "failed" ? "failed" : null),
    }));
    count.textContent = `${kept.length} of ${plural(rows.length, "row")}`;
    all.forEach((each) => each.refresh());
  }
  draw();
  return section("Models", html("div", { class: "controls" },
    html("label", { for: "filter" }, "Filter"), input, chips), count, place);
}

function gainAndCost(run, number) {
  const found = run.part.arms.filter((each) => each.speedup && each.compile_s > 0);
  if (found.length < 3) return null;
  const arms = [...new Set(run.part.arms.map((each) => each.arm))];
  return section("Speedup against compile time", scatter(found.map((each) => ({
    name: `${run.cases[each.case].label}${arms.length > 1 ? `, ${each.arm}` : ""}`,
    bounds: each.speedup, cost: each.compile_s, arm: each.arm, category: category(each),
    href: modelLink(number, run.cases[each.case]),
  })), arms));
}

function studyTables(run, number) {
  const link = (label) => {
    const own = run.cases.filter((each) => each.label === label);
    return own.length === 1 ? modelLink(number, own[0]) : null;
  };
  return run.part.tables.map((table) => {
    const place = html("div");
    let [filter, order] = ["", table.order];
    const draw = () => place.replaceChildren(
      studyTable(table, filter, order, (chosen) => { order = chosen; }, link));
    draw();
    const input = html("input", { type: "search", "aria-label": `Filter ${table.title}`,
      placeholder: "filter", oninput: () => { filter = input.value; draw(); } });
    const title = table.title.charAt(0).toUpperCase() + table.title.slice(1);
    return section(title, html("p", { class: "note" }, table.doc),
      html("div", { class: "controls" }, input), place);
  });
}

function runView(data, number, parameters) {
  const run = data.runs[number];
  const facts = Object.fromEntries(run.facts);
  return [
    heading(1, run.title),
    html("p", { class: "note" }, headline(run)),
    run.ended < run.planned && html("p", { class: "warning" },
      `Unfinished: ${run.ended} of ${plural(run.planned, "case")} have ended.`),
    run.warnings.map((each) => html("p", { class: "warning" },
      html("strong", {}, "Unfit machine: "), each)),
    html("details", { class: "box" }, html("summary", {}, "What was measured where, and how"),
      definitions(run.facts.filter(([name]) => name !== "command")), command(facts.command)),
    groupTable(run, number),
    earlierSection(run, number),
    modelTable(run, number, parameters),
    gainAndCost(run, number),
    matrix(run),
    studyTables(run, number),
    run.lines.length > 0 && section("In the words of the study",
      html("pre", { tabindex: "0" }, run.lines.join("\n").trim())),
  ];
}

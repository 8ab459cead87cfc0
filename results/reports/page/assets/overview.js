// The overview: what needs a look, then pass rate, speedup, compile time and memory by suite.
function looks(run, number) {
  const groups = new Map();
  for (const each of run.part.looks) {
    if (!groups.has(each.kind)) groups.set(each.kind, []);
    groups.get(each.kind).push(each);
  }
  const worse = earlierLooks(run, number);
  if (!groups.size && !run.warnings.length && !worse) {
    return html("p", { class: "good" }, run.good);
  }
  const shown = 12;
  return html("ul", { class: "looks" },
    run.warnings.map((each) => html("li", { class: "warning" },
      html("strong", {}, "unfit machine: "), each)),
    worse,
    [...groups].map(([kind, found]) => html("li", {},
      html("strong", {}, `${kind.replaceAll("_", " ")} (${found.length})`),
      html("ul", {}, found.slice(0, shown).map((each) => html("li", {},
        html("a", { href: modelLink(number, run.cases[each.case]) }, run.cases[each.case].label),
        each.arm ? ` ${each.arm}` : "", html("span", { class: "note" }, ` ${each.text}`)))),
      found.length > shown && html("p", { class: "note" }, `and ${found.length - shown} more: `,
        html("a", { href: runLink(number, {}) }, "the table of models")))));
}

function groupTable(run, number) {
  const { groups, arms } = run.part;
  if (!groups.length) return html("p", { class: "missing" }, "Nothing has ended yet.");
  const domain = ratioDomain(groups.map((each) => each.speedup).filter(Boolean));
  const timed = run.part.is_timed;
  const several = new Set(arms.map((each) => each.arm)).size > 1;
  const headers = ["suite", "arm", "verdicts", "pass rate",
    ...(timed ? ["geomean speedup", ratioAxis(domain), "compile time", "memory ratio"] : [])];
  const rows = groups.map((group, index) => [
    `${group.suite}, ${group.mode}, ${group.dtype}`,
    group.arm,
    tally(arms.filter((each) => each.group === index), (name) => runLink(number, { show: name, arm: several ? group.arm : "" })),
    group.pass_rate || missing("all were skipped"),
    ...(timed ? [
      group.speedup ? html("span", {}, html("strong", {}, times(group.speedup.value)), " ",
        html("span", { class: "note" }, `${intervalText(group.speedup)} n=${group.speedup.n}`))
        : missing("no model has a speedup that counts"),
      group.speedup ? ratioBar(group.speedup, "mean", domain) : "",
      group.compile_s === null ? missing("not measured")
        : `${digits(group.compile_s, 3)} s (n=${group.compile_n})`,
      group.memory_ratio === null ? missing("no model has one")
        : `${times(group.memory_ratio, 2)} (n=${group.memory_n})`,
    ] : []),
  ]);
  return plainTable(headers, rows, "groups");
}

// Suites by backends: the geometric mean, and how many passed.
function matrix({ part: { groups } }) {
  const key = (each) => `${each.suite}, ${each.mode}, ${each.dtype}`;
  const suites = [...new Set(groups.map(key))];
  const arms = [...new Set(groups.map((each) => each.arm))];
  if (suites.length * arms.length < 2 || !groups.some((each) => each.speedup)) return null;
  const cell = (suite, arm) => {
    const found = groups.filter((each) => key(each) === suite && each.arm === arm);
    if (!found.length) return missing("not in this run");
    return found.map((each) => {
      const value = each.speedup ? each.speedup.value : null;
      const place = html("div", { class: "heat" },
        value === null ? missing("no speedup that counts") : html("strong", {}, times(value, 2)),
        html("span", { class: "note" }, each.pass_rate || "all were skipped"));
      if (value !== null) {
        const strength = Math.min(1, Math.abs(Math.log2(value)));
        place.classList.add(value >= 1 ? "up" : "down");
        place.style.setProperty("--strength", `${Math.round(8 + 52 * strength)}%`);
      }
      return place;
    });
  };
  return section("Suites by backends",
    plainTable(["suite", ...arms], suites.map((suite) =>
      [suite, ...arms.map((arm) => cell(suite, arm))]), "matrix"));
}

function overviewView(data) {
  const { runs } = data;
  return [
    heading(1, runs.length > 1 ? `${runs.length} runs` : runs[0].title),
    runs.map((run, number) => html("section", {},
      runs.length > 1 && heading(2, html("a", { href: runLink(number, {}) },
        `${run.run_id}: ${run.title}`)),
      html("p", { class: "note" }, headline(run)),
      heading(runs.length > 1 ? 3 : 2, "What needs a look"), looks(run, number),
      heading(runs.length > 1 ? 3 : 2, "By suite and backend"), groupTable(run, number))),
    runs.length === 1 && matrix(runs[0]),
  ];
}

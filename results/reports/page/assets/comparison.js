// Two runs beside each other: what differs, the weekly table, then model by model.
const WORSE = ["newly failing", "slower", "compiles longer", "needs more memory", "captures less",
  "eager is slower"];
const BETTER = ["newly passing", "faster", "compiles sooner", "needs less memory", "captures more",
  "eager is faster"];

function changeCategory(change) {
  if (WORSE.includes(change)) return "SLOWER";
  return BETTER.includes(change) ? "FASTER" : "UNCLEAR";
}

// A bar is what it is over what it was: below 1 is worse for a speedup, and better for a time.
function findingList(change, found, data) {
  const ratios = found.map((each) => each.ratio).filter(Boolean);
  const domain = ratios.length ? ratioDomain(ratios) : null;
  const name = changeCategory(change);
  return html("details", { class: `box ${categoryClass(name)}`, open: change !== "unclear" },
    html("summary", {}, `${change} (${found.length})`),
    plainTable(["model", "backend", domain ? ratioAxis(domain) : "", "what it was and is"],
      found.map((each) => {
        const after = data.runs[1].cases.find((one) => one.label === each.model
          && one.mode === each.mode && one.suite === each.suite);
        return [
          after ? html("a", { href: modelLink(1, after) }, each.model) : each.model,
          [each.arm, each.mode, each.apart].filter(Boolean).join(", "),
          each.ratio ? ratioBar(each.ratio, name, domain) : "",
          html("div", {}, each.text, each.command && html("details", { class: "note" },
            html("summary", {}, "repeat it"), command(each.command))),
        ];
      }), domain ? "findings" : "findings no-bars"));
}

function comparisonView(data) {
  const { comparison, runs } = data;
  const title = heading(1, "What changed");
  const sides = html("p", {}, "from ", html("a", { href: runLink(0, {}) }, runs[0].run_id), " to ",
    html("a", { href: runLink(1, {}) }, runs[1].run_id));
  if (!comparison.found) {
    return [title, sides, html("p", { class: "warning" },
      html("strong", {}, "These runs can't be compared: "), comparison.refused)];
  }
  const { found } = comparison;
  const kinds = [...new Set(found.findings.map((each) => each.change))];
  return [
    title, sides,
    section("What differs between them", found.conditions.length
      ? plainTable(["", "before", "after"], found.conditions.map((each) =>
        [each.name, each.before, each.after]))
      : html("p", {}, "No difference is known.")),
    found.notes.length > 0 && html("ul", { class: "notes" },
      found.notes.map((each) => html("li", {}, each))),
    section("By model", kinds.map((kind) =>
      findingList(kind, found.findings.filter((each) => each.change === kind), data)),
    comparison.nothing && html("p", {}, `There is ${comparison.nothing}.`)),
    comparison.tables.map((table) => section(table.title,
      plainTable(table.headers, table.rows, "weekly"))),
    html("ul", {}, comparison.lines.map((each) => html("li", {}, each))),
  ];
}

// What the models of a run were in earlier runs, where an index has some.
const earlierRuns = new Map();

function armKey(found) {
  return `${found.case} ${found.arm}`;
}

// Of a run by its number; null where nothing earlier is known.
function earlierOf(number) {
  if (!earlierRuns.has(number)) {
    const found = readJson(`earlier-${number}`);
    const byArm = new Map();
    if (found) {
      found.history.series.forEach((each, index) => {
        const key = armKey({ case: found.cases[index], arm: each.arm });
        byArm.set(key, [...(byArm.get(key) || []), each]);
      });
    }
    earlierRuns.set(number, found && { past: found.history, byArm });
  }
  return earlierRuns.get(number);
}

// The series of an arm that says most: its speedups, or how it ended where it has none now.
function earlierSeries(earlier, row) {
  const own = earlier.byArm.get(armKey(row)) || [];
  const metric = row.speedup ? "speedup" : "status";
  return own.find((each) => each.metric === metric) || own[0] || null;
}

// The last change of an arm that nothing has undone, of how it ends or of its speedup: what is
// worse before what is better, then the later one.
function standingChange(earlier, row) {
  const own = earlier.byArm.get(armKey(row)) || [];
  const last = own.map((each) => each.changes.filter((change) => change.is_lasting).pop())
    .filter((change) => change);
  const rank = (change) => `${change.direction === "worse" ? 1 : 0}${change.at}`;
  last.sort((one, other) => (rank(one) < rank(other) ? 1 : -1));
  return last[0] || null;
}

// Orders changes: what is worse comes first, an arm that fails before any that is slower.
function changeRank(change) {
  if (change.ratio === null) return change.direction === "worse" ? -9 : 9;
  return Math.log(change.ratio);
}

function changeGlyph(change) {
  return html("span", { class: "glyph", "aria-hidden": "true" },
    change.direction === "worse" ? "\u25bc" : "\u25b2");
}

function sinceText(change) {
  const commit = change.differences.find(([name, , after]) => name.startsWith("commit") && after);
  return `since ${change.at.slice(0, 10)}${commit ? `, ${commit[0]} ${commit[2]}` : ""}`;
}

function earlierColumn(earlier) {
  return { key: "earlier", title: "earlier runs", className: "line wide",
    doc: "The speedup in these runs with its interval, this one last; where its level changed.",
    value: (row) => { const change = standingChange(earlier, row); return change && changeRank(change); },
    cell: (row) => {
      const found = earlierSeries(earlier, row);
      if (!found) return missing("in no earlier run");
      const change = standingChange(earlier, row);
      return [sparkline(earlier.past, found, true),
        change ? html("div", { class: `note category ${changeClass(change)}` },
          changeGlyph(change), `${sizeText(change)} since ${change.at.slice(0, 10)}`)
          : html("span", { class: "unseen" }, `${plural(found.runs.length, "run")}, no change`)];
    } };
}

function earlierItem(earlier, number, { row, change }) {
  const others = differenceTexts({ differences: change.differences.filter(([name]) =>
    !name.startsWith("commit")) }, 3).join("; ");
  const size = change.ratio === null ? "" : ` (${sizeText(change)})`;
  return html("li", { class: `category ${changeClass(change)}` }, changeGlyph(change), " ",
    html("a", { href: modelLink(number, row.of) }, row.of.label), ` ${row.arm}: `,
    html("strong", {}, `${change.before} \u2192 ${change.after}${size}`), ` ${sinceText(change)}`,
    html("div", { class: "note" }, "after ", runName(earlier.past, change.last_before), ", by ",
      runName(earlier.past, change.first_after), others && `; ${others}`));
}

// What has become worse, or better, up to this run, and still is.
function standingChanges(earlier, run, direction) {
  const found = armRows(run).map((row) => ({ row, change: standingChange(earlier, row) }))
    .filter(({ change }) => change && change.direction === direction);
  found.sort((one, other) => changeRank(one.change) - changeRank(other.change));
  return direction === "worse" ? found : found.reverse();
}

const MOST_CHANGES = 12;
function standingList(earlier, number, found) {
  const items = found.slice(0, MOST_CHANGES).map((each) => earlierItem(earlier, number, each));
  const rest = found.slice(MOST_CHANGES).map((each) => earlierItem(earlier, number, each));
  return [html("ul", { class: "looks" }, items),
    rest.length > 0 && html("details", {}, html("summary", {}, `and ${rest.length} more`),
      html("ul", { class: "looks" }, rest))];
}

function earlierSection(run, number) {
  const earlier = earlierOf(number);
  if (!earlier) return null;
  const { runs } = earlier.past;
  const worse = standingChanges(earlier, run, "worse");
  const better = standingChanges(earlier, run, "better");
  return section("Beside earlier runs",
    html("p", { class: "note" }, `${plural(runs.length - 1, "earlier run")} since `
      + `${runs[0].created_at.slice(0, 10)} measured some of this in the same way.`),
    worse.length ? [html("p", {}, `Worse, and still so: ${worse.length}`),
      standingList(earlier, number, worse)]
      : html("p", { class: "good" }, "Nothing became worse in them and still is."),
    better.length > 0 && html("details", { class: "box" },
      html("summary", {}, `Better, and still so: ${better.length}`),
      standingList(earlier, number, better)));
}

// For the overview: what has become worse needs a look, however fast it still is.
function earlierLooks(run, number) {
  const earlier = earlierOf(number);
  const worse = earlier ? standingChanges(earlier, run, "worse") : [];
  return worse.length > 0 && html("li", {},
    html("strong", {}, `worse than in earlier runs (${worse.length})`),
    html("ul", {}, worse.slice(0, MOST_CHANGES).map(({ row, change }) => html("li", {},
      html("a", { href: modelLink(number, row.of) }, row.of.label), ` ${row.arm}`,
      html("span", { class: "note" }, ` ${change.before} \u2192 ${change.after}, ${sinceText(change)}`)))),
    worse.length > MOST_CHANGES && html("p", { class: "note" },
      `and ${worse.length - MOST_CHANGES} more: `, html("a", { href: runLink(number, { sort: "earlier" }) },
        "the table of models")));
}

// In the view of a model: each series with its chart and its runs.
function earlierCharts(number, index, arms) {
  const earlier = earlierOf(number);
  if (!earlier) return [];
  const own = arms.flatMap((arm) => earlier.byArm.get(armKey({ case: index, arm: arm.arm })) || []);
  return own.map((found) => pastSection(earlier.past, [found], false,
    `Earlier runs: ${own.some((each) => each.arm !== found.arm) ? `${found.arm}, ` : ""}`
      + `${found.metric.replaceAll("_", " ")}`));
}

// Series of runs as SVG, over time. What they show is in a table of runs, too.
const MINUTE = 60e3;
const DAY = 1440 * MINUTE;
const TIME_STEPS = [1, 5, 10, 30, 60, 180, 360, 720].map((each) => each * MINUTE)
  .concat([1, 2, 7, 14, 28, 56, 91, 182, 364, 728].map((each) => each * DAY));

function timeTicks(low, high, most) {
  const step = TIME_STEPS.find((each) => (high - low) / each <= most)
    || TIME_STEPS[TIME_STEPS.length - 1];
  const found = [];
  for (let time = Math.ceil(low / step) * step; time <= high; time += step) found.push(time);
  return found;
}

function timeText(time, span) {
  const text = new Date(time).toISOString();
  return span >= 2 * DAY ? text.slice(0, 10) : text.slice(5, 16).replace("T", " ");
}

function timeDomain(times) {
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const margin = (last - first) * 0.03 || 30 * MINUTE;
  return [first - margin, last + margin];
}

function timeOf(past, number) {
  return Date.parse(past.runs[number].created_at);
}

function isDoubted(found, place) {
  return found.marks.some(([own, , doubt]) => own === place && doubt);
}

// Places of runs that have a value from which something is concluded.
function usable(found) {
  const doubted = new Set(found.marks.filter(([, , doubt]) => doubt).map(([place]) => place));
  return found.values.map((_, place) => place)
    .filter((place) => found.values[place] !== null && !doubted.has(place));
}

// A line of a table's height, with a mark where the level changed; or how each run ended.
function sparkline(past, found) {
  if (found.metric === "status") {
    const x = linearScale(...timeDomain(found.runs.map((run) => timeOf(past, run))), 2, 158);
    const width = Math.max(0.8, Math.min(6, 140 / found.runs.length));
    return svg("svg", { class: "sparkline", viewBox: "0 0 160 24", "aria-hidden": "true" },
      endingsOf(past, found, x, 1, width));
  }
  const places = usable(found);
  if (places.length < 2) return "";
  const times = places.map((place) => timeOf(past, found.runs[place]));
  const values = places.map((place) => found.values[place]);
  const x = linearScale(times[0], times[times.length - 1], 2, 158);
  const y = linearScale(Math.min(...values), Math.max(...values), 21, 3);
  const path = values.map((value, index) =>
    `${index ? "L" : "M"}${x(times[index]).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  return svg("svg", { class: "sparkline", viewBox: "0 0 160 24", "aria-hidden": "true" },
    found.changes.map((change) => svg("line", { class: `change ${changeClass(change)}`,
      x1: x(Date.parse(change.at)), x2: x(Date.parse(change.at)), y1: 0, y2: 24 })),
    svg("path", { d: path }));
}

function changeClass(change) {
  if (change.by_eager) return "is-unclear";
  return change.direction === "worse" ? "is-slower" : "is-faster";
}

function bandOf(past, change, x, box) {
  const [from, to] = [change.last_before, change.first_after].map((each) => x(timeOf(past, each)));
  return svg("rect", { class: `band ${changeClass(change)}`, x: from, width: Math.max(2, to - from),
    y: box.top, height: box.bottom - box.top }, svg("title", {}, changeText(change)));
}

// Where a series begins that is apart from the one before it.
function apartLine(past, found, x, box) {
  const at = x(timeOf(past, found.runs[0]));
  return svg("line", { class: "apart", x1: at, x2: at, y1: box.top, y2: box.bottom },
    svg("title", {}, found.apart));
}

// Levels between changes; before the first and after the last to the ends of the series.
function levelsOf(past, found, x, y) {
  const numeric = found.changes.filter((each) => each.levels);
  if (!numeric.length) return [];
  const ends = [timeOf(past, found.runs[0]), ...numeric.map((each) => Date.parse(each.at)),
    timeOf(past, found.runs[found.runs.length - 1])];
  const values = [numeric[0].levels[0], ...numeric.map((each) => each.levels[1])];
  return values.map((value, index) => svg("line", { class: "level", x1: x(ends[index]),
    x2: x(ends[index + 1]), y1: y(value), y2: y(value) }));
}

function marksOf(past, found, x, y, box, tone) {
  const interval = found.values.map((value, place) => (value === null ? ""
    : `M${x(timeOf(past, found.runs[place])).toFixed(1)} ${y(found.lows[place]).toFixed(1)}V`
      + y(found.highs[place]).toFixed(1))).join("");
  return [
    svg("path", { class: `intervals ${tone}`, d: interval }),
    found.values.map((value, place) => {
      const at = x(timeOf(past, found.runs[place]));
      const title = svg("title", {}, runText(past, found, place));
      if (value === null) {
        return svg("path", { class: "absent", d: `M${at - 4} ${box.bottom - 9}l8 8m0-8l-8 8` }, title);
      }
      return svg("circle", { class: `run ${tone} ${isDoubted(found, place) ? "doubted" : ""}`,
        cx: at.toFixed(1), cy: y(value).toFixed(1), r: found.values.length > 120 ? 2 : 3.5 }, title);
    }),
  ];
}

function runText(past, found, place) {
  const run = past.runs[found.runs[place]];
  const mark = found.marks.find(([own]) => own === place);
  const value = found.values[place];
  return [run.run_id, run.created_at.slice(0, 16).replace("T", " "), run.torch && `torch ${run.torch}`,
    value === null ? null : `${digits(value, 4)} [${digits(found.lows[place], 4)}, `
      + `${digits(found.highs[place], 4)}]`,
    mark && mark[1] !== "pass" ? mark[1] : null, mark && mark[2]].filter(Boolean).join(", ");
}

// Series of one metric that were measured in different ways, one after the other on one axis.
function timeChart(past, group, unit) {
  const box = { left: 64, right: 852, top: 14, bottom: 232 };
  const times = group.flatMap((found) => found.runs.map((run) => timeOf(past, run)));
  const [start, end] = timeDomain(times);
  const values = group.flatMap((found) => [...found.lows, ...found.highs])
    .filter((each) => each !== null);
  const pad = (Math.max(...values) - Math.min(...values)) * 0.06 || Math.max(...values) * 0.05;
  const x = linearScale(start, end, box.left, box.right);
  const y = linearScale(Math.min(...values) - pad, Math.max(...values) + pad, box.bottom, box.top);
  const drawn = group.map((found, index) => {
    const tone = `arm-${(index + 1) % 8}`;
    return [
      found.changes.map((change) => bandOf(past, change, x, box)),
      index > 0 && apartLine(past, found, x, box),
      levelsOf(past, found, x, y),
      marksOf(past, found, x, y, box, tone),
    ];
  });
  const changes = group.reduce((sum, found) => sum + found.changes.length, 0);
  return svg("svg", { class: "chart", viewBox: "0 0 864 260", role: "img",
    "aria-label": `${plural(times.length, "run")}, ${plural(changes, "change")} of level` },
  frame(x, y, timeTicks(start, end, 7), niceTicks(y.low, y.high, 7), box,
    { one: unit === "x" ? 1 : null, x: (time) => timeText(time, end - start),
      y: (value) => `${value}${unit === "x" ? "x" : ` ${unit}`}` }),
  drawn);
}

const ENDINGS = { pass: "is-passed", skip: "is-skipped" };

function endingsOf(past, found, x, y, width) {
  const statuses = new Map(found.marks.map(([place, status]) => [place, status]));
  return found.runs.map((run, place) => {
    const status = statuses.get(place) || "pass";
    const [top, height] = status === "pass" ? [y + 6, 10] : [y, 22];
    return svg("rect", { class: `ending ${ENDINGS[status] || "is-failed"}`,
      x: (x(timeOf(past, run)) - width / 2).toFixed(1), width: width.toFixed(1), y: top, height },
    svg("title", {}, runText(past, found, place)));
  });
}

// How each run ended: a stroke for each; those that did not pass are taller.
function statusChart(past, group) {
  const times = group.flatMap((found) => found.runs.map((run) => timeOf(past, run)));
  const [start, end] = timeDomain(times);
  const x = linearScale(start, end, 64, 852);
  const width = Math.max(1, Math.min(12, 700 / times.length));
  return svg("svg", { class: "chart", viewBox: "0 0 864 52", role: "img",
    "aria-label": `How ${plural(times.length, "run")} ended` },
  timeTicks(start, end, 7).map((time) =>
    svg("text", { x: x(time), y: 46, class: "middle" }, timeText(time, end - start))),
  group.map((found, index) => [
    index > 0 && apartLine(past, found, x, { top: 0, bottom: 32 }),
    endingsOf(past, found, x, 4, width),
  ]));
}

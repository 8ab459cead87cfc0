// Series of runs as SVG, over time. What they show is in a table of runs, too.
const MINUTE = 60e3;
const DAY = 1440 * MINUTE;
const LEAST_MARGIN = MINUTE / 2;
const TIME_STEPS = [1, 5, 10, 30, 60, 180, 360, 720].map((each) => each * MINUTE)
  .concat([1, 2, 7, 14, 28, 56, 91, 182, 364, 728].map((each) => each * DAY));

function timeTicks(low, high, most) {
  if (high - low <= 2 * LEAST_MARGIN) return [(low + high) / 2];
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
  const margin = (last - first) * 0.03 || LEAST_MARGIN;
  return [first - margin, last + margin];
}

function timeOf(past, number) {
  return Date.parse(past.runs[number].created_at);
}

// How a run of a series ended, and why it is in doubt; of runs that passed and aren't nothing is kept.
const marked = new WeakMap();
function markAt(found, place) {
  if (!marked.has(found)) {
    marked.set(found, new Map(found.marks.map(([own, status, doubt]) => [own, { status, doubt }])));
  }
  return marked.get(found).get(place) || { status: "pass", doubt: null };
}

// Places of runs that have a value from which something is concluded.
function usable(found) {
  return found.values.map((_, place) => place)
    .filter((place) => found.values[place] !== null && !markAt(found, place).doubt);
}

const LEAST_SPREAD = 1.05;
// A line of a table's height, with a mark where the level changed; or how each run ended.
function sparkline(past, found, hasIntervals = false) {
  if (found.metric === "status") return statusLine(past, found);
  const places = usable(found);
  if (places.length < 2) return "";
  const times = places.map((place) => timeOf(past, found.runs[place]));
  const values = places.map((place) => found.values[place]);
  const x = linearScale(times[0], times[times.length - 1], 2, 158);
  const [lows, highs] = hasIntervals
    ? [found.lows, found.highs].map((each) => places.map((place) => each[place])) : [values, values];
  const ends = [Math.min(...lows), Math.max(...highs)];
  // Beside other models what is but noise must not look like steps.
  const middle = Math.sqrt(ends[0] * ends[1]);
  const y = hasIntervals
    ? linearScale(Math.min(ends[0], middle / LEAST_SPREAD), Math.max(ends[1], middle * LEAST_SPREAD), 21, 3)
    : linearScale(...ends, 21, 3);
  const points = (own) => own.map((value, index) => `${x(times[index]).toFixed(1)} ${y(value).toFixed(1)}`);
  const path = `M${points(values).join("L")}`;
  const last = values.length - 1;
  return svg("svg", { class: "sparkline", viewBox: "0 0 160 24", "aria-hidden": "true" },
    found.changes.map((change) => svg("line", { class: `change ${changeClass(change)}`,
      x1: x(Date.parse(change.at)), x2: x(Date.parse(change.at)), y1: 0, y2: 24 })),
    hasIntervals && svg("path", { class: "spread",
      d: `M${[...points(highs), ...points(lows).reverse()].join("L")}Z` }),
    svg("path", { d: path }),
    hasIntervals && svg("circle", { class: "now", cx: x(times[last]), cy: y(values[last]), r: 2 }));
}

function statusLine(past, found) {
  const x = linearScale(...timeDomain(found.runs.map((run) => timeOf(past, run))), 2, 158);
  const strokes = { "is-passed": "", "is-skipped": "", "is-failed": "" };
  found.runs.forEach((run, place) => {
    const name = endingClass(markAt(found, place).status);
    strokes[name] += `M${x(timeOf(past, run)).toFixed(1)} ${name === "is-failed" ? "1v22" : "7v10"}`;
  });
  return svg("svg", { class: "sparkline", viewBox: "0 0 160 24", "aria-hidden": "true" },
    Object.entries(strokes).map(([name, d]) => d && svg("path", { class: `stroke ${name}`, d })));
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

// Values beyond the axis are drawn on its edge.
function marksOf(past, found, x, y, box, tone) {
  const inside = (value) => Math.min(box.bottom, Math.max(box.top, y(value)));
  const places = found.values.map((_, place) => place).filter((place) => found.values[place] !== null);
  const at = (place) => x(timeOf(past, found.runs[place])).toFixed(1);
  return [
    svg("path", { class: `intervals ${tone}`, d: places.map((place) =>
      `M${at(place)} ${inside(found.lows[place]).toFixed(1)}`
      + `V${inside(found.highs[place]).toFixed(1)}`).join("") }),
    places.map((place) => svg("circle", {
      class: `run ${tone} ${markAt(found, place).doubt ? "doubted" : ""}`, cx: at(place),
      cy: inside(found.values[place]).toFixed(1), r: found.values.length > 120 ? 2 : 3.5 },
    svg("title", {}, runText(past, found, place)))),
  ];
}

// Runs in which the arm did not pass have no value; the series of how it ended has them.
function failuresOf(past, found, x, box) {
  const same = ["suite", "model", "mode", "arm"];
  const own = past.series.filter((each) => each.metric === "status"
    && same.every((name) => each[name] === found[name])
    && (found.configuration === each.configuration
      || found.configuration.startsWith(`${each.configuration}, caches `)));
  return own.flatMap((each) => each.marks.filter(([, status]) => endingClass(status) === "is-failed")
    .map(([place]) => [each, place, timeOf(past, each.runs[place])]))
    .filter(([, , time]) => time >= x.low && time <= x.high)
    .map(([each, place, time]) => svg("path", { class: "absent",
      d: `M${(x(time) - 4).toFixed(1)} ${box.bottom - 9}l8 8m0-8l-8 8` },
    svg("title", {}, runText(past, each, place))));
}

function valueText(found, place) {
  if (found.values[place] === null) return null;
  const [value, low, high] = [found.values, found.lows, found.highs].map((each) => digits(each[place], 4));
  return `${value} [${low}, ${high}]`;
}

function runText(past, found, place) {
  const run = past.runs[found.runs[place]];
  const { status, doubt } = markAt(found, place);
  return [run.run_id, run.created_at.slice(0, 16).replace("T", " "), run.torch && `torch ${run.torch}`,
    valueText(found, place), status !== "pass" && status, doubt].filter(Boolean).join(", ");
}

// Series of one metric that were measured in different ways, one after the other on one axis.
function timeChart(past, group, unit) {
  const box = { left: 64, right: 852, top: 14, bottom: 232 };
  const times = group.flatMap((found) => found.runs.map((run) => timeOf(past, run)));
  const [start, end] = timeDomain(times);
  const known = group.flatMap((found) => usable(found).flatMap((place) =>
    [found.lows[place], found.highs[place]]));
  const values = known.length ? known
    : group.flatMap((found) => found.values.filter((each) => each !== null));
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
  const failures = failuresOf(past, group[0], x, box);
  const changes = group.reduce((sum, found) => sum + found.changes.length, 0);
  return svg("svg", { class: "chart", viewBox: "0 0 864 260", role: "img",
    "aria-label": `${plural(times.length, "run")}, ${plural(changes, "change")} of level` },
  frame(x, y, timeTicks(start, end, 7), niceTicks(y.low, y.high, 7), box,
    { one: unit === "x" ? 1 : null, x: (time) => timeText(time, end - start),
      y: (value) => `${value}${unit === "x" ? "x" : ` ${unit}`}` }),
  drawn, failures);
}

function endingClass(status) {
  return { pass: "is-passed", skip: "is-skipped" }[status] || "is-failed";
}

function endingsOf(past, found, x, y, width) {
  return found.runs.map((run, place) => {
    const name = endingClass(markAt(found, place).status);
    const [top, height] = name === "is-failed" ? [y, 22] : [y + 6, 10];
    return svg("rect", { class: `ending ${name}`, x: (x(timeOf(past, run)) - width / 2).toFixed(1),
      width: width.toFixed(1), y: top, height }, svg("title", {}, runText(past, found, place)));
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

// Charts as SVG. Each says in words what it shows; what it shows is in a table, too.
const RATIO_TICKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3,
  5, 10, 20, 50, 100];

function logScale(low, high, from, to) {
  const width = Math.log(high / low) || 1;
  const scale = (value) => from + (to - from) * Math.log(value / low) / width;
  return Object.assign(scale, { low, high });
}

function linearScale(low, high, from, to) {
  const width = high - low || 1;
  return Object.assign((value) => from + (to - from) * (value - low) / width, { low, high });
}

// The ends of an axis of ratios; always with 1 on it.
function ratioDomain(found) {
  const lows = found.map((each) => Math.max(each.low, each.value / 1.6));
  const highs = found.map((each) => Math.min(each.high, each.value * 1.6));
  return [Math.min(0.95, ...lows) / 1.03, Math.max(1.05, ...highs) * 1.03];
}

function ratioTicks([low, high], most) {
  const within = RATIO_TICKS.filter((each) => each >= low && each <= high);
  const apart = Math.log(high / low) / most;
  const kept = [1];
  for (const each of within.filter((tick) => tick > 1)) {
    if (Math.log(each / kept[kept.length - 1]) >= apart) kept.push(each);
  }
  let last = 1;
  for (const each of within.filter((tick) => tick < 1).reverse()) {
    if (Math.log(last / each) >= apart) { kept.unshift(each); last = each; }
  }
  return kept;
}

// A bar from 1 to a ratio, with its interval as a line; as wide as its cell.
function ratioBar(bounds, name, domain) {
  const scale = logScale(domain[0], domain[1], 0, 1000);
  const inside = (value) => Math.min(1000, Math.max(0, scale(value)));
  const [one, value] = [inside(1), inside(bounds.value)];
  const text = `${times(bounds.value)} ${intervalText(bounds)}`;
  return svg("svg", { class: `ratio ${categoryClass(name)}`, viewBox: "0 0 1000 20",
    preserveAspectRatio: "none", role: "img", "aria-label": text },
  svg("title", {}, `${text}, ${name}`),
  ratioTicks(domain, 5).map((each) => svg("line", { class: each === 1 ? "one" : "tick",
    x1: inside(each), x2: inside(each), y1: 0, y2: 20 })),
  svg("rect", { class: "shape", x: Math.min(one, value), width: Math.abs(value - one), y: 4,
    height: 12 }),
  svg("line", { class: "interval", x1: inside(bounds.low), x2: inside(bounds.high), y1: 10,
    y2: 10 }),
  // An interval that goes beyond the axis has no end there.
  [bounds.low, bounds.high].filter((end) => end >= domain[0] && end <= domain[1]).map((end) =>
    svg("line", { class: "interval", x1: inside(end), x2: inside(end), y1: 6, y2: 14 })));
}

function ratioAxis(domain) {
  const scale = logScale(domain[0], domain[1], 0, 100);
  const axis = html("span", { class: "axis", "aria-hidden": "true" });
  for (const each of ratioTicks(domain, 5)) {
    const label = html("span", {}, `${each}x`);
    label.style.left = `${scale(each)}%`;
    axis.append(label);
  }
  return axis;
}

// How many arms fall into each category, as one bar; each part leads to those models.
function tally(arms, link) {
  const counts = Object.keys(CATEGORIES).map((name) =>
    [name, arms.filter((each) => category(each) === name).length]).filter(([, count]) => count);
  const bar = html("span", { class: "tally" });
  for (const [name, count] of counts) {
    const part = html("a", { href: link(name), class: categoryClass(name),
      title: `${count} ${CATEGORIES[name][1]}`, "aria-label": `${count} ${CATEGORIES[name][1]}` },
    html("span", { "aria-hidden": "true" }, `${CATEGORIES[name][0]}\u2009${count}`));
    part.style.flexGrow = count;
    bar.append(part);
  }
  return bar;
}

function niceTicks(low, high, most) {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) {
    found.push(Number(value.toPrecision(12)));
  }
  return found;
}

function decadeTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const each of [1, 2, 5]) found.push(Number((each * 10 ** power).toPrecision(3)));
  }
  const within = found.filter((each) => each >= low && each <= high);
  if (within.length < 2) return niceTicks(low, high, 4);
  return within.length > 8 ? within.filter((each) => Number.isInteger(Number(Math.log10(each).toFixed(9)))) : within;
}

const MARKERS = [
  (x, y) => svg("circle", { cx: x, cy: y, r: 5 }),
  (x, y) => svg("rect", { x: x - 4.5, y: y - 4.5, width: 9, height: 9 }),
  (x, y) => svg("path", { d: `M${x} ${y - 6}L${x + 6} ${y + 5}L${x - 6} ${y + 5}Z` }),
  (x, y) => svg("path", { d: `M${x} ${y - 6.5}L${x + 6.5} ${y}L${x} ${y + 6.5}L${x - 6.5} ${y}Z` }),
];

function frame(x, y, xTicks, yTicks, box, texts) {
  return [
    yTicks.map((each) => [
      svg("line", { class: texts.one === each ? "one" : "grid", x1: box.left, x2: box.right,
        y1: y(each), y2: y(each) }),
      svg("text", { x: box.left - 6, y: y(each) + 4, class: "end" }, texts.y(each)),
    ]),
    xTicks.map((each) => [
      svg("line", { class: "grid", x1: x(each), x2: x(each), y1: box.top, y2: box.bottom }),
      svg("text", { x: x(each), y: box.bottom + 16, class: "middle" }, texts.x(each)),
    ]),
  ];
}

// Speedup against compile time: what is gained, and what it costs.
function scatter(points, arms) {
  const box = { left: 56, right: 708, top: 12, bottom: 300 };
  const domain = ratioDomain(points.map((each) => each.bounds));
  const costs = points.map((each) => each.cost);
  const x = logScale(Math.min(...costs) / 1.2, Math.max(...costs) * 1.2, box.left, box.right);
  const y = logScale(domain[0], domain[1], box.bottom, box.top);
  const said = html("p", { class: "said", "aria-live": "polite" }, "Point at a model, or tab to it.");
  const drawn = points.map((each) => {
    const text = `${each.name}: ${times(each.bounds.value)} ${intervalText(each.bounds)},`
      + ` compiled in ${digits(each.cost, 3)} s`;
    const say = () => { said.textContent = text; };
    const [low, high] = [each.bounds.low, each.bounds.high].map((value) =>
      Math.min(box.bottom, Math.max(box.top, y(value))));
    return svg("a", { href: each.href, class: `point ${categoryClass(each.category)}`,
      "aria-label": text, onmouseover: say, onfocus: say },
    svg("line", { class: "interval", x1: x(each.cost), x2: x(each.cost), y1: low, y2: high }),
    MARKERS[arms.indexOf(each.arm) % MARKERS.length](x(each.cost), y(each.bounds.value)));
  });
  const chart = svg("svg", { class: "chart", viewBox: "0 0 720 340", role: "group",
    "aria-label": "Speedup against compile time, a mark for each model" },
  frame(x, y, decadeTicks(x.low, x.high), ratioTicks(domain, 7), box,
    { one: 1, x: (each) => `${each} s`, y: (each) => `${each}x` }),
  svg("text", { x: box.right, y: 334, class: "end label" }, "compile time (log)"),
  drawn);
  const legend = arms.length > 1 && html("p", { class: "legend" }, arms.map((arm, index) =>
    html("span", {}, svg("svg", { viewBox: "0 0 16 16", class: "key", "aria-hidden": "true" },
      MARKERS[index % MARKERS.length](8, 8)), ` ${arm}`)));
  return html("figure", {}, chart, legend, said);
}

// Samples of one replicate in the order in which they were taken, block by block. A sample beyond
// the axis is drawn on its edge, and counted in the caption.
function strip(replicate, metric, arms, range) {
  const box = { left: 50, right: 470, top: 10, bottom: 170 };
  const own = replicate.samples.filter((each) => each.metric === metric);
  const blocks = own.flatMap((each) => each.blocks.map(([number]) => number));
  const x = linearScale(Math.min(...blocks), Math.max(...blocks) + 1, box.left, box.right);
  const y = linearScale(range[0], range[1], box.bottom, box.top);
  const shaded = metric !== "latency" ? [] : replicate.disturbed.map((block) =>
    svg("rect", { class: "disturbed", x: x(block), width: Math.max(1, x(block + 1) - x(block)),
      y: box.top, height: box.bottom - box.top }, svg("title", {}, `block ${block}: disturbed`)));
  const beyond = [];
  const drawn = own.map((each) => {
    const lane = (arms.indexOf(each.arm) + 0.5) / arms.length;
    const marks = each.blocks.flatMap(([number, samples]) => samples.map((sample, index) => {
      const within = lane + ((index + 0.5) / samples.length - 0.5) / arms.length;
      if (sample > range[1]) beyond.push(`M${x(number + within).toFixed(1)} ${box.top}h0`);
      return sample > range[1] ? "" : `M${x(number + within).toFixed(1)} ${y(sample).toFixed(1)}h0`;
    }));
    return svg("path", { class: `samples arm-${arms.indexOf(each.arm) % 8}`, d: marks.join("") });
  });
  if (beyond.length) drawn.push(svg("path", { class: "samples beyond", d: beyond.join("") }));
  const counts = own.map((each) =>
    `${each.arm} ${each.blocks.reduce((sum, [, samples]) => sum + samples.length, 0)}`);
  return html("figure", { class: "strip" },
    html("figcaption", {}, `${replicate.name}: samples of ${counts.join(", ")}`,
      beyond.length > 0 && `; ${beyond.length} beyond ${digits(range[1], 3)} ms, on the edge`),
    svg("svg", { class: "chart", viewBox: "0 0 480 196", role: "img",
      "aria-label": `Samples of ${replicate.name}, in ms, by block` },
    frame(x, y, niceTicks(x.low, x.high, 6).filter(Number.isInteger), niceTicks(range[0], range[1],
      4), box, { x: (each) => String(each), y: (each) => String(each) }), shaded, drawn));
}

function strips(details, arms, metric, caption) {
  const own = details.replicates.filter((each) =>
    each.samples.some((found) => found.metric === metric));
  const values = own.flatMap((each) => each.samples.filter((found) => found.metric === metric))
    .flatMap((found) => found.blocks.flatMap(([, samples]) => samples));
  if (!values.length) return null;
  values.sort((one, other) => one - other);
  const low = values[0];
  const most = values[values.length - 1];
  const usual = low + (values[Math.floor(0.985 * (values.length - 1))] - low) * 1.5;
  const high = most > usual && usual > low ? usual : most;
  const margin = (high - low) * 0.05 || high * 0.05 || 1;
  return html("div", {}, heading(3, caption),
    html("p", { class: "legend" }, arms.map((arm, index) => html("span", {},
      html("span", { class: `swatch arm-${index % 8}`, "aria-hidden": "true" }),
      ` ${arm}`)),
    html("span", { class: "note" }, "ms, by number of the block; the axis need not begin at 0",
      metric === "latency" && own.some((each) => each.disturbed.length > 0)
        && "; something else was busy in shaded blocks")),
    html("div", { class: "strips" }, own.map((each) =>
      strip(each, metric, arms, [low - margin, high + margin]))));
}

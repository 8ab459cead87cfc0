// How figures and outcomes are written.
function digits(value, count) {
  if (value === null || value === undefined) return null;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(1);
  const decimals = size === 0 ? 0 : Math.max(0, count - 1 - Math.floor(Math.log10(size)));
  return value.toLocaleString("en", { minimumFractionDigits: Math.min(decimals, 6),
    maximumFractionDigits: Math.min(decimals, 6) });
}

function times(value, decimals = 3) {
  return value === null || value === undefined ? null : `${value.toFixed(decimals)}x`;
}

function intervalText(bounds) {
  return `[${bounds.low.toFixed(3)}, ${bounds.high.toFixed(3)}]`;
}

function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

const CATEGORIES = {
  SLOWER: ["\u25bc", "slower than eager"],
  UNCLEAR: ["?", "not known well enough"],
  EQUIVALENT: ["=", "as fast as eager"],
  FASTER: ["\u25b2", "faster than eager"],
  passed: ["\u2713", "passed"],
  failed: ["\u2715", "did not pass"],
  skipped: ["\u2013", "left out"],
  "not run": ["\u25cb", "not run"],
};

// Into which of these an arm falls: what is concluded of it, or how it ended.
function category(arm) {
  if (arm.verdict) return arm.verdict;
  if (arm.status === "pass") return "passed";
  if (arm.status === "skip") return "skipped";
  return arm.status === "not run" ? "not run" : "failed";
}

function categoryClass(name) {
  return `is-${name.toLowerCase().replace(" ", "-")}`;
}

function categoryLabel(name, word = name) {
  return html("span", { class: `category ${categoryClass(name)}` },
    html("span", { class: "glyph", "aria-hidden": "true" }, CATEGORIES[name][0]), " ",
    html("span", { class: "word" }, word));
}

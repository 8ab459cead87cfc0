// Which view is shown is in the address, after "#": #/run/0?sort=-speedup&q=resnet
const DATA = readJson("data");
const VISITED = { visited: true };
const scrolled = new Map();

function address(path, parameters) {
  const set = Object.entries(parameters).filter(([, value]) => value);
  const query = new URLSearchParams(set).toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

function runLink(number, parameters) {
  return address(`run/${number}`, parameters);
}

function modelLink(number, found) {
  return address(`model/${number}/${encodeURIComponent(found.id)}`, {});
}

function replaceParameters(parameters) {
  const path = window.location.hash.replace(/^#\/?/, "").split("?")[0] || firstView();
  window.history.replaceState(VISITED, "", address(path, parameters));
}

function firstView() {
  if (DATA.history) return "history";
  if (DATA.comparison) return "compare";
  return DATA.runs.length > 1 ? "overview" : "run/0";
}

function views() {
  return [
    ...(DATA.history ? [["history", isOfOneModel() ? "This model" : "History"]] : []),
    ...(DATA.runs.length ? [["overview", "Overview"]] : []),
    ...DATA.runs.map((run, number) => [`run/${number}`,
      DATA.runs.length > 1 ? `Run ${run.run_id}` : "Run"]),
    ...(DATA.comparison ? [["compare", "Compare"]] : []),
  ];
}

// The view to which that of one model belongs.
function viewOf(path) {
  const [view, first] = path.split("/");
  return { model: `run/${first}`, past: "history" }[view];
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;  // typed by hand
  }
}

function drawn(path, parameters) {
  const [view, first, second] = path.split("/");
  const number = Number(first || 0);
  const isKnown = number in DATA.runs;
  if (view === "overview" && DATA.runs.length) return overviewView(DATA);
  if (view === "run" && isKnown) return runView(DATA, number, parameters);
  if (view === "model" && isKnown) return modelView(DATA, number, decoded(second || ""));
  if (view === "compare" && DATA.comparison) return comparisonView(DATA);
  if (view === "history" && DATA.history) return historyView(DATA, parameters);
  if (view === "past" && DATA.history) return pastView(DATA, decoded(first || ""));
  return [heading(1, "No such view"), html("p", {}, "This page has no ", html("code", {}, path))];
}

function show(isFirst) {
  const hash = window.location.hash;
  const [path, query] = (hash.replace(/^#\/?/, "") || firstView()).split("?");
  const parameters = Object.fromEntries(new URLSearchParams(query || ""));
  const main = document.getElementById("main");
  main.replaceChildren(...drawn(path, parameters).flat(Infinity).filter(Boolean), keys());
  document.getElementById("views").replaceChildren(
    ...(DATA.home ? [html("a", { href: DATA.home }, "Runs")] : []),
    ...(DATA.home && (!DATA.history || isOfOneModel())
      ? [html("a", { href: `${DATA.home}history` }, "History")] : []),
    ...views().map(([name, title]) => html("a", { href: `#/${name}`,
      "aria-current": path === name || viewOf(path) === name ? "page" : null }, title)));
  const title = main.querySelector("h1");
  document.title = title ? title.textContent : "Dynamometer";
  if (!isFirst && title) title.focus({ preventScroll: true });
  // Whoever goes back is where they were.
  window.scrollTo(0, window.history.state ? scrolled.get(hash) || 0 : 0);
  window.history.replaceState(VISITED, "");
}

function keys() {
  return html("footer", {}, html("p", {}, html("kbd", {}, "/"), " filter, ", html("kbd", {}, "n"),
    " and ", html("kbd", {}, "p"), " next and previous model, ", html("kbd", {}, "u"),
    " all models. ", `Dynamometer ${DATA.version}.`));
}

document.addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (isTyping && event.key === "Escape") event.target.blur();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const wanted = { "/": "#filter", n: "a[rel=next]", p: "a[rel=prev]", u: "a[rel=up]" }[event.key];
  const target = wanted && document.querySelector(wanted);
  if (!target) return;
  event.preventDefault();
  if (target.id === "filter") target.focus();
  else target.click();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();  // the address says which view is shown
  document.getElementById("main").focus();
});
window.history.scrollRestoration = "manual";
window.addEventListener("scroll", () => scrolled.set(window.location.hash, window.scrollY));
window.addEventListener("hashchange", () => show(false));
show(true);

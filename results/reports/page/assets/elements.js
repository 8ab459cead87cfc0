"use strict";
// Elements are made of names, attributes and text: nothing that a run holds is ever read as HTML.
const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

function html(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return filled(document.createElementNS(SVG_NAMESPACE, name), attributes, children);
}

function heading(level, text) {
  return html(`h${level}`, level === 1 ? { tabindex: "-1" } : {}, text);
}

function section(title, ...children) {
  return html("section", {}, heading(2, title), ...children);
}

// What is missing is shown as missing; the reason is there to read, not only to hover over.
function missing(reason) {
  if (!reason) return html("span", { class: "missing" }, "\u2013");
  return html("span", { class: "missing", title: reason }, "\u2013",
    html("span", { class: "unseen" }, ` ${reason}`));
}

function definitions(pairs) {
  return html("dl", { class: "facts" }, pairs.map(([name, value]) =>
    html("div", {}, html("dt", {}, name), html("dd", {}, value))));
}

function readJson(id) {
  const node = document.getElementById(id);
  return node ? JSON.parse(node.textContent) : null;
}

function command(text) {
  const code = html("code", {}, text);
  const copy = html("button", { type: "button", class: "copy", onclick: async () => {
    const selection = window.getSelection();
    selection.selectAllChildren(code);
    if (!navigator.clipboard) return;
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "copied";
    } catch {
      copy.textContent = "selected";  // whoever may not copy has it marked
    }
  } }, "copy");
  return html("div", { class: "command" }, code, copy);
}

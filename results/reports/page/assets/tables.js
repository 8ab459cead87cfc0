// Tables that sort by any column and filter by words; what is missing always comes last.
function compareValues(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}

function sorted(rows, column, descending) {
  const absent = (row) => {
    const value = column.value(row);
    return value === null || value === undefined || value === "";
  };
  const present = rows.filter((row) => !absent(row));
  present.sort((one, other) => compareValues(column.value(one), column.value(other)));
  return [...(descending ? present.reverse() : present), ...rows.filter(absent)];
}

function matches(text, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = text.toLowerCase();
  return words.every((word) => (word.startsWith("-") && word.length > 1
    ? !found.includes(word.slice(1)) : found.includes(word)));
}

// What follows a table of thousands of rows must be reached as well.
const MOST_ROWS = 200;

// A column is {key, title, doc, value, cell, numeric, className, head}; `order` is "key" or "-key".
function sortableTable({ caption, columns, rows, order, onOrder, rowClass }) {
  const body = html("tbody");
  let most = MOST_ROWS;
  const more = rows.length > most && html("button", { type: "button", class: "chip",
    onclick: () => {
      most = rows.length;
      more.remove();
      fill();
    } }, `show all ${rows.length} rows`);
  const heads = columns.map((column) => {
    const button = html("button", { type: "button", title: column.doc,
      onclick: () => {
        const first = column.numeric ? `-${column.key}` : column.key;
        const second = column.numeric ? column.key : `-${column.key}`;
        order = order === first ? second : first;
        fill();
        onOrder(order);
      } }, column.title);
    return html("th", { scope: "col", class: column.className }, button, column.head);
  });
  function fill() {
    const key = order.replace(/^-/, "");
    const chosen = columns.find((each) => each.key === key);
    const shown = chosen ? sorted(rows, chosen, order.startsWith("-")) : rows;
    columns.forEach((column, index) => {
      if (column === chosen) {
        heads[index].setAttribute("aria-sort", order.startsWith("-") ? "descending" : "ascending");
      } else heads[index].removeAttribute("aria-sort");
    });
    body.replaceChildren(...shown.slice(0, most).map((row) => html("tr", { class: rowClass && rowClass(row) },
      columns.map((column, index) => html(index ? "td" : "th",
        { class: column.className, scope: index ? null : "row" }, column.cell(row))))));
  }
  fill();
  return html("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    html("table", { class: "data" }, html("caption", { class: "unseen" }, caption),
      html("thead", {}, html("tr", {}, heads)), body), more);
}

function plainCell(value, reason) {
  if (value === null || value === undefined) return missing(reason);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Number.isInteger(value)) return String(value);
  return typeof value === "number" ? digits(value, 4) : value;
}

// A table of a study: its columns as its CSV has them.
function studyTable(table, filter, order, onOrder, modelLink) {
  const columns = table.columns.map((column, index) => {
    const numeric = table.rows.some((row) => typeof row[index] === "number");
    const isLong = table.rows.some((row) => String(row[index]).length > 28);
    const unit = column.unit && column.unit !== "x" ? ` (${column.unit})` : "";
    return {
      key: column.name,
      title: column.name.replaceAll("_", " ") + unit,
      doc: column.doc,
      numeric,
      className: numeric ? "number" : isLong ? "long" : "text",
      value: (row) => row[index],
      cell: (row) => {
        const link = column.name === "name" && modelLink(row[index]);
        return link ? html("a", { href: link }, row[index]) : plainCell(row[index]);
      },
    };
  });
  const named = table.columns.findIndex((each) => each.name === "name");
  if (named > 0) columns.unshift(...columns.splice(named, 1));
  const rows = table.rows.filter((row) => matches(row.join(" "), filter));
  return sortableTable({ caption: table.doc, columns, rows, order, onOrder });
}

function plainTable(headers, rows, className = "") {
  return html("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "table" },
    html("table", { class: `data ${className}` },
      html("thead", {}, html("tr", {}, headers.map((each) => html("th", { scope: "col" }, each)))),
      html("tbody", {}, rows.map((row) => html("tr", {}, row.map((each, index) =>
        html(index ? "td" : "th", { scope: index ? null : "row",
          "data-label": typeof headers[index] === "string" ? headers[index] : null }, each)))))));
}

// A model: what is concluded and why, raw samples, and how to repeat it.
function armCard(arm, domain) {
  const figures = [
    ["speedup", arm.speedup && `${times(arm.speedup.value)} ${intervalText(arm.speedup)},`
      + ` ${plural(arm.speedup.n, "replicate")}`],
    ["p, adjusted", arm.adjusted_p === null ? null
      : `${digits(arm.p_value, 2)}, ${digits(arm.adjusted_p, 2)}`],
    ["latency", arm.latency_ms === null ? null
      : `${digits(arm.latency_ms, 4)} ms; baseline ${digits(arm.eager_ms, 4)} ms`],
    ["compile time", arm.compile_s === null ? null : `${digits(arm.compile_s, 3)} s`],
    ["with filled caches", arm.compile_warm_s === null ? null
      : `${digits(arm.compile_warm_s, 3)} s`],
    ["memory ratio", arm.memory_ratio === null
      ? arm.memory_reason && html("span", { class: "missing" }, `none: ${arm.memory_reason}`)
      : times(arm.memory_ratio, 2)],
    ["pays after", arm.pays_after === null ? null : `${digits(arm.pays_after, 3)} calls`],
    ["captured", arm.graphs === null ? null : `${plural(arm.ops, "operator")} in `
      + `${plural(arm.graphs, "graph")}, ${plural(arm.breaks, "graph break")}`],
    ["largest error", arm.max_error === null ? null : digits(arm.max_error, 2)],
    ["marks", arm.marks.length ? arm.marks.join(", ") : null],
  ].filter(([, value]) => value);
  return html("article", { class: `card ${categoryClass(category(arm))}` },
    html("h2", {}, arm.arm, " ", categoryLabel(category(arm))),
    arm.speedup && [ratioAxis(domain), ratioBar(arm.speedup, category(arm), domain)],
    (arm.line || arm.reason) && html("p", {}, arm.line || arm.reason),
    definitions(figures));
}

function modelView(data, number, id) {
  const run = data.runs[number];
  const index = run.cases.findIndex((each) => each.id === id);
  if (index < 0) return [heading(1, "No such model"), html("p", {}, `This run has no ${id}.`)];
  const found = run.cases[index];
  const details = readJson(`details-${number}-${index}`);
  const arms = run.part.arms.filter((each) => each.case === index);
  const next = (step) => {
    const other = run.cases[index + step];
    return other ? html("a", { href: modelLink(number, other), rel: step > 0 ? "next" : "prev" },
      step > 0 ? `${other.label} \u2192` : `\u2190 ${other.label}`) : html("span");
  };
  const head = [
    html("nav", { class: "beside", "aria-label": "Models" }, next(-1),
      html("a", { href: runLink(number, {}), rel: "up" }, "all models"), next(1)),
    heading(1, found.label),
    html("p", { class: "note" }, [`${found.suite}`, found.mode, found.device, found.dtype,
      found.shapes, found.batch_size === null ? "batch size of its own"
        : `batch size ${found.batch_size}`, plural(found.replicates, "replicate")].join(" \u00b7 ")),
  ];
  if (!details) {
    return [...head, html("p", { class: "warning" },
      `Not run: ${run.absent}.`)];
  }
  const names = [...new Set(["baseline", ...details.replicates.flatMap((each) =>
    each.samples.map((sample) => sample.arm))])];
  const domain = ratioDomain(arms.map((each) => each.speedup).filter(Boolean));
  const samples = [
    strips(details, names, "latency", "Beside each other, in blocks"),
    strips(details, names, "latency_isolated", "Isolated runs: each arm in its own process"),
  ].filter(Boolean);
  return [
    ...head,
    html("div", { class: "cards" }, arms.map((each) => armCard(each, domain))),
    earlierCharts(number, index, arms),
    details.failures.map(([title, text]) => html("details", { class: "box", open: true },
      html("summary", {}, title), html("pre", { tabindex: "0" }, text))),
    samples.length > 0 && section("Samples, in the order in which they were taken", samples),
    details.command && section("To repeat it", command(details.command)),
    details.missing.length > 0 && section("What is missing", html("ul", {},
      details.missing.map((each) => html("li", {}, each)))),
    details.notes.length > 0 && section("Notes", html("ul", {},
      details.notes.map((each) => html("li", {}, each)))),
    section("Replicates", plainTable(
      ["", "status", "began", "seconds", "arms were built in this order", "disturbed blocks", "end"],
      details.replicates.map((each) => [each.name, each.status, each.started_at, each.seconds,
        each.build_order.join(", ") || missing("not recorded"), String(each.disturbed.length),
        each.stopped ? `stopped: ${each.stopped}` : ""]))),
    section("In the words of the study",
      html("pre", { class: "wrapped" }, details.told.join("\n").trim())),
    html("details", { class: "box" }, html("summary", {}, "Environment"), definitions(run.facts)),
    details.log.length > 0 && html("details", { class: "box" }, html("summary", {}, "Log"),
      html("pre", { tabindex: "0" }, details.log.join("\n").trim())),
  ];
}

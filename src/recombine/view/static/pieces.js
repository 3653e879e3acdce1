// Pieces that several pages share.

import { el, number } from "./dom.js";
import { drawChart } from "./chart.js";

/** What went wrong and how to fix it. */
export function errorBox(error) {
  return el("div", { class: "error", role: "alert" }, el("b", {}, error.message), error.fix ? `\nFix: ${error.fix}` : "");
}

/** A figure that the server draws: a promise of {title, caption, spec} or {nothing}. */
export function figureCard(title, promise) {
  const head = el("h3", {}, title), plate = el("div", { class: "plate" }, el("p", { class: "soft" }, "Drawing\u2026"));
  const caption = el("figcaption", {});
  promise.then((figure) => {
    if (figure.nothing) {
      plate.replaceChildren(el("p", { class: "soft small" }, figure.nothing));
      return;
    }
    head.textContent = figure.title || title;
    caption.textContent = figure.caption || "";
    drawChart(plate, figure.spec);
  }).catch((error) => plate.replaceChildren(errorBox(error)));
  return el("figure", { class: "ev-figure" }, head, plate, caption);
}

/** A table of names and values. */
export function facts(rows) {
  return el("div", { class: "scroll" }, el("table", {}, el("tbody", {}, rows.map(([name, value]) =>
    el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "mono" }, typeof value === "number" ? number(value) : text(value)))))));
}

/** Any value as text. */
export function text(value) {
  if (value === null || value === undefined) return "\u2013";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A select with options; `names` may be texts or [value, text]. */
export function select(names, chosen, change, properties) {
  const options = names.map((name) => {
    const [value, words] = Array.isArray(name) ? name : [name, name];
    return el("option", { value, selected: value === chosen }, words);
  });
  return el("select", { ...properties, onchange: (event) => change(event.target.value) }, options);
}

/** Wait until calls stop for some milliseconds. */
export function debounced(milliseconds, call) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), milliseconds);
  };
}

export function shortRun(name) {
  return name.slice(0, 8);
}

/** How far a study or sweep is: its words, a bar, and a count. */
export function progressLine(request, extra) {
  return el("div", { class: "progress" },
    el("span", {}, el("b", {}, request.name), ` ${request.kind}`, request.training ? el("span", { class: "tag" }, "training") : "", extra || ""),
    el("progress", { max: request.runs, value: request.done, "aria-label": `${request.name}: ${request.done} of ${request.runs} runs` }),
    el("span", { class: "soft" }, `${request.done} of ${request.runs} runs`));
}

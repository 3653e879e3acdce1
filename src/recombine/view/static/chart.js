// Vega-Lite charts. The bundle is large, so it is loaded when the first chart is drawn.

import { el } from "./dom.js";

let loading = null;

function bundle() {
  loading ||= new Promise((resolve, reject) => {
    document.head.append(el("script", { src: "/static/vega.js", onload: resolve, onerror: () => reject(new Error("the drawing script cannot be loaded")) }));
  });
  return loading;
}

/** Draw a chart in an element. Expressions are interpreted (ast), never compiled, so no data can become code. */
export async function drawChart(place, spec) {
  const chart = el("div", { class: "chart" }, "Drawing\u2026");
  place.replaceChildren(chart);
  try {
    await bundle();
    chart.replaceChildren();
    const copy = { ...spec, usermeta: { embedOptions: { mode: "vega-lite" } } };
    delete copy.$schema;
    await window.vegaEmbed(chart, copy, { ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true } });
  } catch (error) {
    chart.replaceChildren(el("p", { class: "soft" }, `This figure could not be drawn: ${error.message}`));
  }
}

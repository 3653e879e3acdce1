// The Plan page: edit a space, and see the plan and its coverage grow row by row.

import { post } from "../api.js";
import { remember } from "../app.js";
import { el, number, svg } from "../dom.js";
import { debounced, errorBox, select } from "../pieces.js";

const EXAMPLE = `factors:
  object: [dog, cat, car, lamp]
  colour: [red, green, blue, black]
  place: [kitchen, street, forest]
  light: [day, night]
forbid:
  - object = lamp and light = day
strength: 2
`;
const FORMATS = [["yaml", "YAML"], ["toml", "TOML"], ["pict", "PICT"], ["acts", "ACTS"], ["ctwedge", "CTWedge"]];

export async function show(place, { query }) {
  let format = query.format || "yaml", turn = 0;
  const result = el("div", { role: "status" });
  const editor = el("textarea", { rows: 18, spellcheck: false, value: query.text || EXAMPLE, "aria-label": "The space", oninput: debounced(450, make) });
  async function make() {
    const mine = ++turn;
    remember("plan", [], { text: editor.value === EXAMPLE ? "" : editor.value.slice(0, 4000), format: format === "yaml" ? "" : format });
    try {
      const plan = await post("plan", { text: editor.value, format });
      if (mine === turn) showPlan(result, plan);
    } catch (error) {
      if (mine === turn) result.replaceChildren(errorBox(error));
    }
  }
  place.replaceChildren(el("div", { class: "head" }, el("h1", {}, "Plan what to collect")),
    el("p", { class: "soft" }, "The combinations that cover every pair of values, in the order in which they help most. Edit the space: the plan follows."),
    el("div", { class: "two" },
      el("div", {}, el("div", { class: "tools" }, el("label", {}, "Format", select(FORMATS, format, (value) => { format = value; make(); }))), editor,
        el("p", { class: "soft small" }, "Keys: factors, levels, forbid, require, include, strength, budget, costs, collected, stronger. Add `collected: [[dog, red, kitchen, day]]` for what is there already.")),
      result));
  await make();
  return {};
}

function showPlan(place, plan) {
  const noun = plan.strength === 2 ? "pairs" : plan.strength === 1 ? "values" : `sets of ${plan.strength} values`;
  const before = plan.covered_before, growth = plan.growth;
  const most = growth.reduce((largest, value, index) => Math.max(largest, value - (index ? growth[index - 1] : before)), 1);
  const body = plan.rows.map((row, index) => {
    const gain = growth.length ? growth[index] - (index ? growth[index - 1] : before) : null;
    return el("tr", {}, el("td", { class: "number soft" }, String(index + 1)), plan.factors.map((_, column) => el("td", {}, row[column] === undefined ? "" : String(row[column]))),
      gain === null ? null : el("td", {}, bar(gain / most), el("span", {}, `+${gain}`)), gain === null ? null : el("td", { class: "number" }, share(growth[index], plan.coverable)));
  });
  place.replaceChildren(
    el("p", {}, el("b", {}, `${plan.count} combinations`), ` cover ${plan.covered.toLocaleString("en")} of ${plan.coverable.toLocaleString("en")} possible ${noun}`,
      before ? ` (${before.toLocaleString("en")} were covered before)` : "", plan.total > plan.coverable ? `; constraints rule out ${(plan.total - plan.coverable).toLocaleString("en")}` : "",
      plan.cost !== plan.count ? `, at a cost of ${number(plan.cost)}.` : "."),
    growth.length ? curve(growth, before, plan.coverable, noun) : "",
    ...plan.notes.filter((note) => !note.startsWith("The constraints rule out")).map((note) => el("p", { class: "soft small" }, note)),
    el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { class: "number" }, "#"), plan.factors.map((name) => el("th", {}, name)),
      growth.length ? [el("th", {}, `new ${noun}`), el("th", { class: "number" }, "covered")] : null)), el("tbody", {}, body))),
    plan.rows.length < plan.count ? el("p", { class: "soft" }, `The first ${plan.rows.length} rows are shown.`) : "");
}

function bar(part) {
  const node = el("span", { class: "gain" });
  node.style.width = `${Math.round(part * 80)}px`;
  return node;
}

function share(value, total) {
  return total ? `${Math.floor((100 * value) / total)} %` : "\u2013";
}

function curve(growth, before, coverable, noun) {
  const width = Math.min(620, Math.max(260, window.innerWidth - 60)), height = 170, left = 44, bottom = height - 26, top = 10;
  const all = [before, ...growth];
  const x = (index) => left + (index / Math.max(1, all.length - 1)) * (width - left - 12), y = (value) => bottom - (value / Math.max(1, coverable)) * (bottom - top);
  const path = all.map((value, index) => `${index ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  return svg("svg", { class: "curve", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Covered ${noun} after each combination` },
    [0, 0.5, 1].map((part) => [svg("line", { class: "axis", x1: left, x2: width - 12, y1: y(part * coverable), y2: y(part * coverable) }), svg("text", { x: left - 6, y: y(part * coverable) + 4, "text-anchor": "end" }, `${part * 100} %`)]),
    svg("path", { class: "under", d: `${path}L${x(all.length - 1)} ${bottom}L${left} ${bottom}Z` }), svg("path", { class: "line", d: path }),
    svg("text", { x: left, y: height - 6 }, "0"), svg("text", { x: width - 12, y: height - 6, "text-anchor": "end" }, `${growth.length} combinations`));
}

// The Compare page: two runs, or two groups of runs.

import { get } from "../api.js";
import { link, remember } from "../app.js";
import { count, el, number } from "../dom.js";
import { drawPoints } from "../points.js";
import { errorBox, text } from "../pieces.js";

export async function show(place, { query }) {
  const state = { a: query.a || "", b: query.b || "", score: query.score || "", margin: query.margin || "" };
  const known = await get("sides").catch(() => ({ tags: [], requests: [] }));
  const result = el("div", { role: "status" });
  const field = (name, label, placeholder) => el("label", { class: "wide" }, label,
    el("input", { type: "text", class: "mono-input", value: state[name], placeholder, spellcheck: false, list: "sides-known", "data-side": name,
      ...(name === "a" ? { "data-search": "" } : {}), oninput: (event) => { state[name] = event.target.value; }, onkeydown: (event) => { if (event.key === "Enter") compare(); } }));
  const small = (name, label, placeholder) => el("label", {}, label,
    el("input", { type: "text", value: state[name], placeholder, size: 14, oninput: (event) => { state[name] = event.target.value; }, onkeydown: (event) => { if (event.key === "Enter") compare(); } }));

  async function compare() {
    remember("compare", [], state);
    result.replaceChildren(el("p", { class: "soft" }, "Comparing\u2026"));
    try {
      showComparison(result, await get("compare", state));
    } catch (error) {
      result.replaceChildren(errorBox(error));
    }
  }

  place.replaceChildren(el("div", { class: "head" }, el("h1", {}, "Compare")),
    el("p", { class: "soft" }, "Two runs, or two groups of runs: a run's name, a tag, a study or sweep, or a filter. Runs are paired by their seeds and the settings that they share."),
    el("div", { class: "tools" }, field("a", "First", "width = 64"), field("b", "Second, compared with it", "width = 128"), small("score", "Score", "score_held_out"), small("margin", "Margin", "0.05"),
      el("button", { class: "primary", onclick: compare }, "Compare")),
    el("datalist", { id: "sides-known" }, [...known.tags, ...known.requests].map((name) => el("option", { value: name }))), result);
  if (state.a && state.b) await compare();
  return {};
}

function showComparison(place, found) {
  const several = found.combinations.some((each) => each.pairs > 1);
  const cards = [[number(found.first.mean), `mean, first: ${count(found.first.runs, "run")}`], [number(found.second.mean), `mean, second: ${count(found.second.runs, "run")}`],
    [found.difference ? number(found.difference.estimate) : "\u2013", "second minus first"],
    [found.effects.length ? String(found.effects.length) : "\u2013", found.effects.length ? "replicates, paired" : "no seeds in common"],
    [found.needed === null ? "\u2013" : String(found.needed), `replicates to decide a margin of ${found.margin}`]];
  place.replaceChildren(
    el("p", { class: "answer" }, el("b", {}, found.answer)),
    found.difference && found.effects.length > 1 ? drawPoints(asClaim(found), { width: Math.min(720, window.innerWidth - 60) }) : "",
    el("div", { class: "cards" }, cards.map(([value, words]) => el("div", { class: "stat" }, el("b", {}, value), el("span", {}, words)))),
    ...found.problems.map((problem) => errorBox({ message: problem })),
    el("h2", {}, "Settings that differ"),
    found.settings.length ? el("div", { class: "scroll" }, el("table", {}, head(["setting", "first", "second"]), el("tbody", {}, found.settings.map((each) =>
      el("tr", {}, el("th", { scope: "row" }, each.name), el("td", { class: "mono" }, values(each.first)), el("td", { class: "mono" }, values(each.second))))))) : el("p", {}, "All settings but the seeds are the same."),
    el("h2", {}, "Combinations"),
    el("p", { class: "soft" }, `${found.flipped} of ${found.compared} flipped: one side solves them (score of at least ${found.solved}), the other does not.`),
    found.combinations.length ? el("div", { class: "scroll" }, el("table", {}, head(["combination", "where", "first", "second", "difference", ...(several ? ["gained", "lost"] : ["flipped"])], 2),
      el("tbody", {}, found.combinations.map((each) => el("tr", {}, el("td", { class: "mono" }, each.combination), el("td", {}, each.regions.replaceAll("_", " ")),
        [each.first, each.second].map((value) => el("td", { class: "number" }, number(value))), el("td", { class: "number" }, signed(each.difference)),
        several ? [each.gained, each.lost].map((value) => el("td", { class: "number" }, String(value))) : el("td", {}, each.gained ? "\u2191 gained" : each.lost ? "\u2193 lost" : "")))))) : el("p", { class: "soft" }, "No combination was tested on both sides."),
    el("p", { class: "small" }, sideLinks(found)));
}

function sideLinks(found) {
  return [found.first, found.second].filter((side) => side.name.startsWith("run ")).map((side) => [el("a", { href: link("run", [side.name.slice(4)]) }, side.name), " "]);
}

function asClaim(found) {
  const { estimate, low, high } = found.difference;
  return { values: found.effects, effect: estimate, interval: [low, high], direction: "equivalent", margin: found.margin, tone: "inconclusive",
    words: { effect: signed(estimate), interval: `${signed(low)} to ${signed(high)}`, margin: `the shaded band is the margin of ${found.margin}` } };
}

function signed(value) {
  return `${value > 0 ? "+" : ""}${number(value)}`;
}

function values(list) {
  return list.slice(0, 8).map((value) => (value === null ? "none" : text(value))).join(", ") + (list.length > 8 ? `, \u2026 (${list.length})` : "");
}

function head(names, left = names.length) {
  return el("thead", {}, el("tr", {}, names.map((name, index) => el("th", { class: index >= left ? "number" : "" }, name))));
}

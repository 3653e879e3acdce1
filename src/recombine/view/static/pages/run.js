// The page of one run.

import { get } from "../api.js";
import { link } from "../app.js";
import { count, el, number } from "../dom.js";
import { facts, figureCard, text } from "../pieces.js";

const TONES = { complete: "supported", failed: "contradicted" };
const HEADLINES = [["score_in", "score, trained combinations"], ["score_held_out", "score, held-out combinations"], ["score_all_pairs_met", "all pairs met in training"],
  ["score_some_pairs_unmet", "some pairs never met"], ["score_part_unseen", "a constituent never seen"]];

export async function show(place, { parts }) {
  const run = await get(`runs/${encodeURIComponent(parts[0] || "")}`);
  const setting = Object.fromEntries(run.settings.map(({ name, value }) => [name, value]));
  const ending = run.ending;
  const cards = HEADLINES.filter(([name]) => typeof run.scores[name] === "number").map(([name, words]) => stat(number(run.scores[name]), words));
  cards.push(stat(number(ending.steps), "steps"), stat(`${number(ending.seconds)} s`, "training"));
  place.replaceChildren(
    el("a", { class: "ev-back", href: link("runs") }, "\u2190 All runs"),
    el("div", { class: "head" }, el("h1", {}, "Run ", el("span", { class: "mono" }, run.run)),
      el("span", { class: `pill ${TONES[ending.status] || "inconclusive"}` }, ending.status)),
    el("p", { class: "soft" }, `${setting.family}, ${setting.model}, trained on ${setting.support} combinations of ${setting.space}`,
      run.scores.metric ? `; its score is ${run.scores.metric}` : "", ".",
      ending.failed_at === null || ending.failed_at === undefined ? "" : ` The loss was not finite at step ${ending.failed_at}.`),
    el("p", { class: "small" }, run.requests.map((request) => [el("span", { class: "tag" }, `${request.kind} ${request.name}`), " "]), run.tags.map((tag) => [el("span", { class: "tag" }, `tag ${tag}`), " "]),
      el("a", { href: link("compare", [], { a: run.run }) }, "Compare with another run")),
    el("div", { class: "cards" }, cards),
    el("div", { class: "split" },
      el("div", {}, run.figures.map((figure) => figureCard(figure.title, get(`runs/${run.run}/figures/${figure.name}`)))),
      el("aside", {},
        el("h2", {}, "Line of parents"), el("div", { class: "card" }, el("ul", { class: "tree" }, branch(run.line, run.run)),
          run.children.length ? el("p", { class: "small" }, `${count(run.children.length, "run")} start from it: `, run.children.map((name) => [el("a", { class: "mono", href: link("run", [name]) }, name.slice(0, 8)), " "])) : null),
        el("h2", {}, "Settings"), facts(run.settings.filter(({ value }) => value !== null).map(({ name, value }) => [name, value])),
        el("h2", {}, "Scores"), facts(Object.entries(run.scores)),
        el("h2", {}, "Measurements"), el("p", {}, run.measurements.join(", ") || "none"),
        el("h2", {}, "Origin"), facts(flat(run.provenance)))));
  return {};
}

function stat(value, words) {
  return el("div", { class: "stat" }, el("b", {}, value), el("span", {}, words));
}

function branch(node, self) {
  const name = node.run === self ? el("b", { class: "mono" }, node.run.slice(0, 8)) : el("a", { class: "mono", href: link("run", [node.run]) }, node.run.slice(0, 8));
  return el("li", {}, name, ` ${node.words}`, node.status === "complete" ? "" : ` (${node.status})`,
    node.parents.length ? el("ul", { class: "tree" }, node.parents.map((parent) => branch(parent, self))) : el("span", { class: "soft" }, node.run === self ? "; it has no parents" : ""));
}

function flat(values, prefix = "") {
  return Object.entries(values || {}).flatMap(([name, value]) =>
    value && typeof value === "object" && !Array.isArray(value) ? flat(value, `${prefix}${name}.`) : [[prefix + name, text(value)]]);
}

// The Evidence page: it shows one JSON document (recombine.view.evidence) and needs no server.

import { count, el, safeLink } from "./dom.js";
import { drawPoints } from "./points.js";

export const MARKS = { supported: "\u2713", contradicted: "\u2717", equivalent: "\u2248", depends: "\u21C5", inconclusive: "?" };

/** The answer of a claim as a coloured word with a mark. */
export function pill(claim) {
  return el("span", { class: `pill ${claim.tone}` }, el("span", { "aria-hidden": "true" }, MARKS[claim.tone] || "?"), claim.answer);
}

function widthFor(most) {
  return Math.min(most, Math.max(240, window.innerWidth - 84));
}

function drawable(claim) {
  return typeof claim.effect === "number";
}

function mainClaims(study) {
  const claims = study.claims.filter((claim) => claim.role === "claim");
  const primary = claims.filter((claim) => claim.primary);
  return primary.length ? primary : claims.slice(0, 1);
}

/**
 * Show the document.
 * @param place The element to fill.
 * @param data The document.
 * @param options `study`, `claim`: what the address names; `link(study, claim)`: an address of this page;
 *   `runLink(run)`: the address of a run; `figures(study)`: a promise of figures, where they are not in the document;
 *   `runs(study)`: a promise of {claim: runs by replicate}; `chart(element, spec)`: draws a Vega-Lite chart.
 */
export function showEvidence(place, data, options) {
  const study = data.studies.find((each) => each.id === options.study || (options.study && each.study === options.study));
  if (options.study && !study) {
    place.replaceChildren(el("h1", {}, "No such study"), el("p", {}, `There is no result called ${options.study}. `,
      el("a", { href: options.link() }, "All studies")));
  } else if (study) {
    showStudy(place, data, study, options);
  } else {
    showStudies(place, data, options);
  }
}

// All studies

function showStudies(place, data, options) {
  const list = el("ol", { class: "ev-list" });
  const mains = data.studies.flatMap((study) => mainClaims(study).map((claim) => ({ study, claim })));
  const tones = Object.keys(MARKS).filter((tone) => mains.some(({ claim }) => claim.tone === tone));
  const state = { text: "", tone: "" };
  const refill = () => {
    const shown = data.studies.filter((study) => matches(study, state));
    list.replaceChildren(...shown.map((study) => row(study, options)));
    if (!shown.length) list.append(el("li", { class: "ev-row" }, el("p", {}, "No study matches.")));
  };
  const chips = tones.map((tone) => {
    const named = mains.filter(({ claim }) => claim.tone === tone);
    const chip = el("button", { class: `ev-chip ${tone}`, type: "button", "aria-pressed": "false", onclick: () => {
      state.tone = state.tone === tone ? "" : tone;
      chips.forEach((each) => each.setAttribute("aria-pressed", String(each === chip && state.tone === tone)));
      refill();
    } }, el("span", { class: "mark" }, MARKS[tone]), `${named[0].claim.answer} ${named.length}`);
    return chip;
  });
  const search = el("input", { type: "search", placeholder: "Search questions and claims", "aria-label": "Search", oninput: () => {
    state.text = search.value.toLowerCase();
    refill();
  } });
  place.replaceChildren(
    el("header", { class: "ev-head" }, el("h1", {}, "Evidence"),
      el("p", { class: "soft" }, data.studies.length
        ? `${count(data.studies.length, "result")}, each decided by claims that were stated before its runs. The answer is that of the main claim; each grey point is one replicate, the bar is the 95 % interval of their mean, and the shaded side is where the claim holds.`
        : "No study has run here yet. Start one, or run: recombine run data-scaling --profile demo")),
    data.studies.length ? el("div", { class: "ev-filters" }, search, chips) : null, data.studies.length ? list : "");
  refill();
}

function matches(study, { text, tone }) {
  if (tone && !mainClaims(study).some((claim) => claim.tone === tone)) return false;
  if (!text) return true;
  return [study.study, study.question, study.profile, ...study.claims.flatMap((claim) => [claim.claim, claim.statement])]
    .join("\n").toLowerCase().includes(text);
}

function row(study, options) {
  const claim = mainClaims(study)[0];
  return el("li", { class: "ev-row" },
    el("div", {}, claim ? pill(claim) : el("span", { class: "tag" }, "no claim")),
    el("div", {},
      el("h3", {}, el("a", { href: options.link(study.id) }, study.question || study.study)),
      claim ? el("p", {}, claim.statement) : null,
      el("div", { class: "ev-meta" }, el("code", {}, study.study), el("span", { class: "tag" }, study.profile), study.origin ? el("span", { class: "tag" }, study.origin) : null, study.counts)),
    claim && drawable(claim) ? drawPoints(claim, { width: 300, height: 62, axis: false }) : el("span", {}));
}

// One study

function showStudy(place, data, study, options) {
  const others = data.studies.filter((each) => each.study === study.study);
  const plates = el("div", {}, el("p", { class: "soft" }, "Drawing\u2026"));
  const cards = study.claims.map((claim) => claimCard(study, claim, options));
  place.replaceChildren(
    el("a", { class: "ev-back", href: options.link() }, "\u2190 All evidence"),
    el("header", { class: "ev-head" },
      el("h1", {}, study.question || study.study),
      el("div", { class: "ev-sizes" }, el("code", {}, study.study),
        others.length > 1
          ? others.map((each) => el("a", { class: "tag", href: options.link(each.id), "aria-current": each === study ? "page" : null }, each.profile))
          : el("span", { class: "tag" }, study.profile),
        study.size ? el("span", { class: "small soft" }, count(study.size, "run")) : null),
      study.answer.map((text) => el("p", {}, text))),
    el("h2", {}, "Claims"), el("p", { class: "soft small" }, study.counts),
    el("ol", { class: "ev-claims" }, cards.map((card) => card.node)),
    el("h2", {}, "Figures"), plates,
    el("p", { class: "soft small" }, "To run this study: ", el("code", {}, study.command)));
  Promise.resolve(study.figures.length || !options.figures ? study.figures : options.figures(study))
    .then((figures) => showFigures(plates, figures, options))
    .catch((error) => plates.replaceChildren(el("p", {}, `The figures cannot be shown: ${error.message}`)));
  if (options.runs && study.live) {
    options.runs(study).then((runs) => cards.forEach((card) => card.setRuns(runs[card.claim.claim] || [])), () => {});
  }
  const chosen = cards.find((card) => card.claim.claim === options.claim);
  if (chosen) {
    chosen.node.classList.add("chosen");
    chosen.node.scrollIntoView({ block: "start" });
  }
}

function claimCard(study, claim, options) {
  let runs = claim.runs || [];
  const behind = el("div", {});
  const choose = (index) => behind.replaceChildren(runsOf(study, claim, index, runs[index] || [], options));
  const details = [["effect", claim.words.effect], ["95 % interval", claim.words.interval], ["margin", claim.words.margin],
    ["p", claim.words.p], ["replicates", String(claim.replicates)],
    ...claim.scales.slice(1).map((scale) => [scale.scale, scale.words])];
  if (claim.scales.length) details[0][0] = `effect, ${claim.scales[0].scale}`;
  const node = el("li", { class: `ev-claim ${claim.tone} ${claim.primary ? "main" : ""}` },
    el("div", { class: "top" }, pill(claim), el("span", { class: "small" }, claim.kind),
      el("a", { href: options.link(study.id, claim.claim), title: "Link to this claim" }, el("code", {}, claim.claim))),
    el("p", { class: "statement" }, claim.statement),
    drawable(claim) ? drawPoints(claim, { width: widthFor(720), choose }) : null,
    behind,
    el("dl", {}, details.map(([name, text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text)))),
    claim.needs.length ? el("p", { class: "ev-note" }, `Needs: ${claim.needs.join(", ")}.`) : null,
    claim.note ? el("p", { class: "ev-note" }, `${claim.note}.`) : null);
  return { claim, node, setRuns: (found) => { runs = found; } };
}

function runsOf(study, claim, index, names, options) {
  const words = `Replicate ${index + 1}: effect ${claim.values[index].toFixed(3)}.`;
  if (!names.length || !options.runLink) {
    const why = study.live ? "Its runs are not known: the study has changed since." : `Its runs are not here. They are trained by: ${study.command}`;
    return el("div", { class: "ev-runs", role: "status" }, `${words} ${why}`);
  }
  return el("div", { class: "ev-runs", role: "status" }, `${words} ${count(names.length, "run")} behind it:`,
    el("ul", {}, names.map((name) => el("li", {}, el("a", { class: "mono", href: options.runLink(name) }, name.slice(0, 8))))));
}

function showFigures(place, figures, options) {
  place.replaceChildren(...figures.map((figure) => {
    const plate = el("div", { class: "plate" });
    if (figure.src) plate.append(el("img", { src: safeLink(figure.src), alt: figure.title, loading: "lazy" }));
    else if (figure.spec && options.chart) options.chart(plate, figure.spec);
    return el("figure", { class: "ev-figure" }, el("h3", {}, figure.title), plate, figure.caption ? el("figcaption", {}, figure.caption) : null);
  }));
  if (!figures.length) place.append(el("p", { class: "soft" }, "This result has no figures."));
}

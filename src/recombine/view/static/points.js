// The replicates of a claim as points, with their mean, its 95 % interval, and the side on which the claim holds.

import { svg, number } from "./dom.js";

function domainOf(claim) {
  const numbers = [...claim.values, ...(claim.interval || []), claim.effect].filter((value) => typeof value === "number");
  const limits = { greater: [0, claim.margin], less: [0, -claim.margin], equivalent: [-claim.margin, claim.margin] };
  numbers.push(...(limits[claim.direction] || [claim.margin]).filter((value) => typeof value === "number"));
  const low = Math.min(...numbers), high = Math.max(...numbers);
  const room = (high - low || Math.abs(high) || 1) * 0.07;
  return [low - room, high + room];
}

function zoneOf(claim, [low, high]) {
  switch (claim.direction) {
    case "greater": return [claim.margin, high];
    case "less": return [low, -claim.margin];
    case "equivalent": return [-claim.margin, claim.margin];
    case "above": return [claim.margin, high];
    case "below": return [low, claim.margin];
    default: return null;
  }
}

function ticks([low, high], most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(Math.abs(at) < step * 1e-6 ? 0 : at);
  return [found, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))];
}

/**
 * Draw the replicates of a claim.
 * @param claim A claim of the document: values, interval, effect, direction, margin, tone.
 * @param options width, height, axis (show numbers below), choose (called with the number of a replicate).
 */
export function drawPoints(claim, { width = 640, height = 96, axis = true, choose = null } = {}) {
  const domain = domainOf(claim), bottom = axis ? height - 24 : height - 4;
  const middle = bottom * 0.36, x = (value) => 8 + ((value - domain[0]) / (domain[1] - domain[0])) * (width - 16);
  const picture = svg("svg", { class: `points ${claim.tone}`, width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${claim.values.length} replicates; effect ${claim.words.effect}, 95 % interval ${claim.words.interval}; ${claim.words.margin}` });
  const zone = zoneOf(claim, domain);
  if (zone && zone.every((value) => typeof value === "number")) {
    picture.append(svg("rect", { class: "zone", x: x(zone[0]), y: 0, width: Math.max(0, x(zone[1]) - x(zone[0])), height: bottom }));
    const limits = claim.direction === "equivalent" ? zone : claim.direction === "less" || claim.direction === "below" ? [zone[1]] : [zone[0]];
    for (const limit of limits) picture.append(svg("line", { class: "limit", x1: x(limit), x2: x(limit), y1: 0, y2: bottom }));
  }
  if (domain[0] < 0 && domain[1] > 0) picture.append(svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: bottom }));
  const [low, high] = claim.interval || [];
  if (typeof low === "number" && typeof high === "number") {
    picture.append(svg("line", { class: "range", x1: x(low), x2: x(high), y1: middle, y2: middle }));
  }
  if (typeof claim.effect === "number") {
    const at = x(claim.effect);
    picture.append(svg("path", { class: "mean", d: `M${at} ${middle - 8}L${at + 7} ${middle}L${at} ${middle + 8}L${at - 7} ${middle}Z` }));
  }
  claim.values.forEach((value, index) => {
    if (typeof value !== "number") return;
    const y = middle + 16 + ((index * 7) % 5) * Math.max(0, (bottom - middle - 24) / 4);
    const dot = svg("circle", { class: "dot", cx: x(value), cy: Math.min(y, bottom - 5), r: 4.5 });
    const words = `replicate ${index + 1}: ${number(value)}`;
    if (!choose) {
      dot.append(svg("title", {}, words));
      picture.append(dot);
      return;
    }
    const open = (event) => { event.preventDefault(); choose(index); };
    const link = svg("a", { href: "#", tabindex: 0, "aria-label": `${words}. Show its runs.`, onclick: open }, svg("title", {}, words), dot);
    link.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") open(event); });
    picture.append(link);
  });
  if (axis) {
    const [marks, digits] = ticks(domain, Math.max(3, width / 90));
    picture.append(svg("line", { class: "axis", x1: 0, x2: width, y1: bottom, y2: bottom }));
    for (const mark of marks) {
      const text = mark.toFixed(digits).replace("-", "\u2212");
      picture.append(svg("text", { x: x(mark), y: height - 7, "text-anchor": "middle" }, text));
    }
  }
  return picture;
}

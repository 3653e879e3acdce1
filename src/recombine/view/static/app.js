// The viewer: which page the address names, the bar above, and what is new.

import { get } from "./api.js";
import { count, el } from "./dom.js";
import { errorBox } from "./pieces.js";
import * as audit from "./pages/audit.js";
import * as compare from "./pages/compare.js";
import * as evidence from "./pages/evidence.js";
import * as plan from "./pages/plan.js";
import * as run from "./pages/run.js";
import * as runs from "./pages/runs.js";
import * as start from "./pages/start.js";

const PAGES = { evidence, runs, run, compare, audit, plan, start };
const NAV = [["evidence", "Evidence"], ["runs", "Runs"], ["compare", "Compare"], ["audit", "Audit"], ["plan", "Plan"], ["start", "Start"]];
const POLL = 2000;

const main = document.getElementById("main");
let current = null;
let latest = null;

/** The address as {page, parts, query}: #/runs?where=... */
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [page, ...parts] = path.split("/").filter(Boolean).map(decode);
  return { page: page in PAGES ? page : "evidence", parts, query: Object.fromEntries(new URLSearchParams(query || "")) };
}

function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

/** An address of the viewer. */
export function link(page, parts = [], query = {}) {
  const chosen = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const path = [page, ...parts].filter(Boolean).map(encodeURIComponent).join("/");
  return `#/${path}${chosen.length ? `?${new URLSearchParams(chosen)}` : ""}`;
}

/** Change the query of the address without a new entry in the history, so that it can be copied. */
export function remember(page, parts, query) {
  history.replaceState(null, "", link(page, parts, query));
}

async function show() {
  const where = address();
  document.querySelectorAll("#nav a").forEach((each) => {
    const here = each.dataset.page === (where.page === "run" ? "runs" : where.page);
    if (here) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  });
  document.title = `${NAV.find(([page]) => page === where.page)?.[1] || "Run"} \u00B7 recombine`;
  current?.leave?.();
  current = null;
  const place = el("div", {}, el("p", { class: "soft loading" }, "Loading\u2026"));
  main.replaceChildren(place);
  window.scrollTo(0, 0);
  try {
    const shown = await PAGES[where.page].show(place, { ...where, state: latest });
    if (!place.isConnected) return shown?.leave?.();  // Somebody went on to another page.
    current = shown || {};
    if (latest) current.news?.(latest);
  } catch (error) {
    place.replaceChildren(errorBox(error));
  }
}

// What is new

async function poll() {
  if (document.visibilityState === "visible") {
    try {
      latest = await get("state");
      status(latest);
      current?.news?.(latest);
    } catch (error) {
      banner(error.status === 401 ? "The token of this page is not valid any more. Open the link that `recombine view` printed." : `${error.message} ${error.fix ? `Fix: ${error.fix}.` : ""}`);
    }
  }
  setTimeout(poll, POLL);
}

function banner(words) {
  const place = document.getElementById("banner");
  if (place.textContent !== words) place.textContent = words;
  place.hidden = !words;
}

function status(state) {
  const running = state.jobs.filter((job) => job.state === "running");
  const place = document.getElementById("status");
  const words = state.exists ? `${state.store} \u00B7 ${count(state.runs, "run")}` : `${state.store} \u00B7 no store yet`;
  const reading = state.reading && state.reading[1] > 50 ? `reading ${state.reading[0].toLocaleString("en")} of ${state.reading[1].toLocaleString("en")} new runs \u00B7 ` : "";
  place.replaceChildren(reading ? el("span", { class: "busy" }, reading) : "", running.length ? el("span", { class: "busy" }, `${running[0].title}: running \u00B7 `) : "", words);
  const problems = state.problems || [];
  banner([state.warning, problems.length ? `${count(problems.length, "problem")} in the store. ${problems[problems.length - 1]}` : ""].filter(Boolean).join(" "));
}

// Keyboard

const KEYS = [["1 \u2026 6", "go to a page"], ["/", "search or filter"], ["j  k", "next and previous row of the table of runs"], ["Enter", "open the chosen run"],
  ["x", "choose a run for a comparison"], ["?", "this help"], ["Esc", "close"]];

function help() {
  const dialog = document.getElementById("help");
  dialog.replaceChildren(el("h2", {}, "Keyboard"), el("table", {}, KEYS.map(([key, words]) => el("tr", {}, el("td", {}, el("kbd", {}, key)), el("td", {}, words)))),
    el("p", {}, el("button", { onclick: () => dialog.close() }, "Close")));
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, dialog")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const page = NAV[Number(event.key) - 1];
  if (page) location.hash = link(page[0]);
  else if (event.key === "?") help();
  else if (event.key === "/") {
    event.preventDefault();
    document.querySelector("[data-search], input[type=search]")?.focus();
  } else current?.key?.(event);
});

document.getElementById("nav").append(...NAV.map(([page, words], index) => el("a", { href: link(page), "data-page": page, title: `Key ${index + 1}` }, words)));
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
window.addEventListener("hashchange", show);
document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") current?.news?.(latest); });
show().then(() => performance.mark("first-page"));
poll();

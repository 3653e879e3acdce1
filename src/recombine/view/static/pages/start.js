// The Start page: a study or a sweep with a form, its dry run; start, watch, stop, resume.

import { get, post } from "../api.js";
import { link, remember } from "../app.js";
import { el, number } from "../dom.js";
import { settingField, valueOf } from "../fields.js";
import { errorBox, progressLine, select } from "../pieces.js";

export async function show(place, { query }) {
  const forms = await get("forms");
  let what = query.what === "sweep" ? "sweep" : "study", request = null;
  const form = el("div", {}), outcome = el("div", { role: "status" }), running = el("div", {}), open = el("div", {});
  const tabs = ["study", "sweep"].map((kind) => el("button", { "aria-pressed": "false", "data-what": kind, onclick: () => choose(kind) }, kind === "study" ? "A study" : "A sweep"));
  const dry = el("button", { onclick: () => act("dry-run", showDryRun) }, "Dry run");
  const begin = el("button", { class: "primary", onclick: () => act("jobs", (job) => outcome.replaceChildren(el("p", {}, `${job.title} has started.`))) }, "Start");

  async function act(path, then) {
    outcome.replaceChildren(el("p", { class: "soft" }, path === "jobs" ? "Starting\u2026" : "Asking\u2026"));
    dry.disabled = begin.disabled = true;
    try {
      then(await post(path, request()));
    } catch (error) {
      outcome.replaceChildren(errorBox(error));
    }
    dry.disabled = begin.disabled = false;
  }

  function showDryRun({ command, plan }) {
    const rows = [["runs in all", plan.runs], ["in the store already", plan.done], ["failed before", plan.failed], ["programs to compile", plan.buckets],
      ["steps to train", plan.steps], ["measurements to make", plan.measurements], ["estimated training", `about ${duration(plan.estimated_seconds)}`]];
    outcome.replaceChildren(el("div", { class: "card" }, el("h3", {}, "What would run"),
      el("table", {}, rows.filter(([, value]) => value !== undefined).map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, typeof value === "number" ? number(value) : value)))),
      el("p", { class: "small soft" }, "The same in a terminal: ", el("code", {}, command))));
  }

  async function choose(kind) {
    what = kind;
    tabs.forEach((tab) => tab.setAttribute("aria-pressed", String(tab.dataset.what === kind)));
    outcome.replaceChildren();
    form.replaceChildren(el("p", { class: "soft" }, "Loading\u2026"));
    try {
      request = await (kind === "study" ? studyForm(form, forms, query) : sweepForm(form, forms));
    } catch (error) {
      form.replaceChildren(errorBox(error));
    }
  }

  place.replaceChildren(el("div", { class: "head" }, el("h1", {}, "Start"), el("span", { class: "soft" }, `into the store ${forms.store}`)), running, open,
    el("div", { class: "switch" }, tabs), form, el("div", { class: "tools" }, dry, begin), outcome);
  await choose(what);
  return { news: (state) => { showJobs(running, state); showOpen(open, state, outcome); } };
}

// Forms

async function studyForm(place, forms, query) {
  const state = { study: query.study || "data-scaling", profile: query.profile || "", changes: {} };
  const fields = el("div", { class: "form" }), question = el("p", {}), profiles = el("span", {});
  async function load() {
    const form = await get(`forms/study/${encodeURIComponent(state.study)}`);
    const names = Object.keys(form.profiles);
    if (!names.includes(state.profile)) state.profile = names.includes("demo") ? "demo" : names[0];
    question.textContent = form.question;
    profiles.replaceChildren(select(names, state.profile, (name) => { state.profile = name; fill(form); }, { "data-profile": "", "aria-label": "Profile" }));
    fill(form);
  }
  function fill(form) {
    state.changes = {};
    remember("start", [], { study: state.study, profile: state.profile });
    const values = form.profiles[state.profile];
    fields.replaceChildren(...form.fields.filter((field) => field.type !== "json").map((field) => settingField({ ...field, value: values[field.name] }, (text) => {
      if (text === null) delete state.changes[field.name];
      else state.changes[field.name] = text;
    })));
  }
  const studies = forms.studies.map(({ name }) => name);
  place.replaceChildren(el("div", { class: "tools" }, el("label", {}, "Study", select(studies, state.study, (name) => { state.study = name; load(); }, { "data-study": "" })), el("label", {}, "Profile: the size", profiles)),
    question, el("details", {}, el("summary", {}, "Settings"), fields));
  await load();
  return () => ({ what: "study", study: state.study, profile: state.profile, overrides: Object.entries(state.changes).map(([name, text]) => `${name}=${text}`) });
}

async function sweepForm(place, forms) {
  const state = { name: "my-sweep", replicates: 2, settings: { family: "hyperteacher" }, changes: {} };
  const fields = el("div", { class: "form" });
  async function load() {
    const { fields: found } = await post("forms/settings", { settings: state.settings });
    fields.replaceChildren(...found.map((field) => settingField({ ...field, several: true }, async (text) => {
      if (field.type === "choice" && text !== null && !text.includes(",")) {
        // Another component has other settings.
        state.settings[field.name] = text;
        for (const name of Object.keys(state.changes)) if (name.startsWith(`${field.name}.`)) delete state.changes[name];
        for (const name of Object.keys(state.settings)) if (name.startsWith(`${field.name}.`)) delete state.settings[name];
        if (field.name === "family") state.settings = { family: text };
        await load();
      } else if (text === null) delete state.changes[field.name];
      else state.changes[field.name] = text;
    }, state.changes[field.name])));
  }
  const family = select(forms.families.map(({ name }) => name), "hyperteacher", async (name) => { state.settings = { family: name }; state.changes = {}; await load(); }, { "data-family": "" });
  const name = el("input", { type: "text", value: state.name, "data-name": "", oninput: () => { state.name = name.value; } });
  const replicates = el("input", { type: "number", min: 1, value: state.replicates, "data-replicates": "", oninput: () => { state.replicates = Number(replicates.value); } });
  place.replaceChildren(el("div", { class: "tools" }, el("label", {}, "Name", name), el("label", {}, "Family", family), el("label", {}, "Replicates of each cell", replicates)),
    el("p", { class: "soft small" }, "Change any setting. Several values, apart by commas, make an axis of the grid: every combination of them is trained."), fields);
  await load();
  return () => {
    const base = { ...state.settings }, grid = {};
    for (const [setting, text] of Object.entries(state.changes)) {
      const values = text.trim().startsWith("[") ? [valueOf(text)] : text.split(",").map((part) => part.trim()).filter(Boolean).map(valueOf);
      if (values.length > 1) grid[setting] = values;
      else base[setting] = values[0];
    }
    return { what: "sweep", sweep: { name: state.name, base, grid, replicates: state.replicates } };
  };
}

// What runs

const STATES = { running: "equivalent", done: "supported", failed: "contradicted", stopped: "inconclusive" };

function showJobs(place, state) {
  const jobs = state.jobs.filter((job) => job.kind === "run").slice(0, 5);
  const shown = place.querySelector(".log"), at = shown ? shown.scrollTop : 0;
  place.replaceChildren(...jobs.map((job) => el("section", { class: "card job", "data-job": job.id, "data-state": job.state },
    el("div", { class: "head" }, el("b", {}, job.title), el("span", { class: `pill ${STATES[job.state]}` }, job.state), el("span", { class: "soft small" }, duration(job.seconds)),
      job.state === "running" ? el("button", { onclick: () => post(`jobs/${job.id}/stop`, {}) }, "Stop") : null,
      job.state === "done" ? el("a", { href: link("runs") }, "See the runs") : null),
    job.error ? errorBox({ message: job.error, fix: job.fix }) : null,
    job.state === "running" || (job.state === "failed" && !job.error) ? el("pre", { class: "log" }, job.lines.slice(-12).join("\n") || "starting\u2026") : null)));
  if (jobs.length) place.append(el("p", {}));
  const log = place.querySelector(".log");
  if (log) log.scrollTop = at || log.scrollHeight;
}

function showOpen(place, state, outcome) {
  const busy = state.jobs.some((job) => job.kind === "run" && job.state === "running");
  const open = state.requests.filter((request) => request.done < request.runs);
  place.replaceChildren(...(open.length ? [el("section", { class: "card" }, el("h3", {}, busy ? "In progress" : "Begun and not done"), open.map((request) => progressLine(request, busy ? "" : [" ",
    el("button", { onclick: async () => {
      try { await post("jobs", { what: "resume", name: request.name }); } catch (error) { outcome.replaceChildren(errorBox(error)); }
    } }, "Resume")]))), el("p", {})] : []));
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "\u2013";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

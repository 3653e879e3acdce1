// The Audit page: drop a table, choose factors and score, read the audit.

import { get, post, upload } from "../api.js";
import { link, remember } from "../app.js";
import { count, el } from "../dom.js";
import { errorBox, select } from "../pieces.js";

export async function show(place, { parts }) {
  const form = el("div", {}), result = el("div", {});
  let timer = 0;
  const input = el("input", { type: "file", hidden: true, accept: ".csv,.tsv,.parquet,.jsonl,.ndjson,.json,.arrow,.feather", onchange: () => take(input.files[0]) });
  const drop = el("div", { class: "drop", tabindex: 0, role: "button", "aria-label": "Choose a table", onclick: () => input.click(),
    onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); input.click(); } },
    ondragover: (event) => { event.preventDefault(); drop.classList.add("over"); }, ondragleave: () => drop.classList.remove("over"),
    ondrop: (event) => { event.preventDefault(); drop.classList.remove("over"); take(event.dataTransfer.files[0]); } },
  el("b", {}, "Drop a table here, or click to choose one"), el("p", { class: "small" }, "One row per example of your model: the factors of the task and a score. CSV, TSV, Parquet, JSON Lines or Arrow, up to 100 MB. It stays on this machine."));

  async function take(file) {
    if (!file) return;
    result.replaceChildren();
    form.replaceChildren(el("p", { class: "soft" }, `Reading ${file.name}\u2026`));
    try {
      columnsForm(await upload("tables", { name: file.name }, file));
    } catch (error) {
      form.replaceChildren(errorBox(error));
    }
  }

  function columnsForm(table) {
    const roles = Object.fromEntries(table.columns.map((column) => [column.name, column.role]));
    const options = { split: "", where: "", scale: "", success: "", lower_is_better: false, quick: false };
    const problem = el("div", {});
    const heads = table.columns.map((column) => el("th", {}, el("div", {}, column.name), el("div", { class: "small soft" }, `${count(column.distinct, "value")}`),
      select([["factor", "factor"], ["score", "score"], ["none", "not used"]], column.role, (role) => { roles[column.name] = role; }, { "aria-label": `Role of ${column.name}`, "data-role": column.name })));
    const text = (name, label, placeholder) => el("label", {}, label, el("input", { type: "text", placeholder, oninput: (event) => { options[name] = event.target.value; } }));
    const flag = (name, label) => el("label", { class: "small" }, el("span", {}, el("input", { type: "checkbox", onchange: (event) => { options[name] = event.target.checked; } }), ` ${label}`));
    const begin = el("button", { class: "primary", onclick: async () => {
      problem.replaceChildren();
      const chosen = (role) => Object.keys(roles).filter((name) => roles[name] === role);
      try {
        const job = await post("audits", { table: table.table, name: table.name, factors: chosen("factor"), scores: chosen("score"), ...options });
        remember("audit", [job.id], {});
        watch(job.id);
      } catch (error) {
        problem.replaceChildren(errorBox(error));
      }
    } }, "Audit");
    form.replaceChildren(el("h2", {}, table.name, el("span", { class: "soft small" }, `  ${count(table.rows, "row")}`)),
      el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, heads)),
        el("tbody", {}, table.head.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell === null ? "\u2013" : cell))))))),
      el("div", { class: "tools", style: null }, text("split", "Column and value of trained rows", "split=train"), text("where", "Only rows where", "kind = 'colors'"), text("scale", "Lowest and highest score", "0,1"), text("success", "Text that means success", "pass"),
        flag("lower_is_better", "low scores are good"), flag("quick", "quick: no fitted models"), begin), problem);
  }

  async function watch(id) {
    clearTimeout(timer);
    let job;
    try {
      job = await get(`audits/${encodeURIComponent(id)}`);
    } catch (error) {
      result.replaceChildren(errorBox(error), el("p", {}, el("a", { href: link("audit") }, "Audit another table")));
      return;
    }
    if (job.state === "running") {
      result.replaceChildren(el("p", { role: "status" }, `${job.title}: running for ${job.seconds} s. `, el("button", { onclick: () => post(`jobs/${id}/stop`, {}) }, "Stop")),
        job.lines.length ? el("pre", { class: "log" }, job.lines.join("\n")) : "");
      if (place.isConnected) timer = setTimeout(() => watch(id), 700);
    } else if (job.page) {
      // The page runs in a sandbox: its scripts have no origin, so they can reach neither this viewer nor the network.
      result.replaceChildren(el("h2", {}, "Audit"), el("iframe", { src: `/${job.page}`, sandbox: "allow-scripts", title: job.title }));
    } else {
      result.replaceChildren(errorBox({ message: job.error || `The audit ${job.state}.`, fix: job.fix }), job.error ? "" : el("pre", { class: "log" }, job.lines.join("\n")));
    }
  }

  place.replaceChildren(el("div", { class: "head" }, el("h1", {}, "Audit your own model")),
    el("p", { class: "soft" }, "Does it recombine, which combinations fail, why, and what to collect next?"), drop, input, form, result);
  if (parts[0]) watch(parts[0]);
  return { leave: () => clearTimeout(timer) };
}

// The Runs page: thousands of rows to filter, sort, group and plot, and what is running.

import { get } from "../api.js";
import { link, remember } from "../app.js";
import { drawChart } from "../chart.js";
import { count, el } from "../dom.js";
import { makeGrid } from "../grid.js";
import { debounced, errorBox, progressLine, select } from "../pieces.js";

const SIGNS = [["=", "is"], ["!=", "is not"], [">=", "at least"], ["<=", "at most"], ["contains", "contains"]];

export async function show(place, { query }) {
  const state = { where: query.where || "", by: query.by || "", sort: query.sort || "", columns: query.columns || "",
    x: query.x || "", y: query.y || "", colour: query.colour || "" };
  const known = await get("columns");
  const names = known.columns.map((column) => column.name);
  const keep = () => remember("runs", [], state);
  const live = el("div", {}), problem = el("div", {}), words = el("span", { class: "soft" });
  const compareButton = el("button", { disabled: true, onclick: () => {
    const [a, b] = grid.chosen();
    location.hash = link("compare", [], { a, b });
  } }, "Compare two chosen runs");
  const filter = el("input", { type: "text", class: "mono-input", value: state.where, spellcheck: false, "data-search": "",
    placeholder: "width >= 128 and family = 'scan'", "aria-label": "Filter", list: "columns-known", oninput: debounced(120, () => apply(filter.value)) });
  const grid = makeGrid({
    load: async ({ sort, offset, limit }) => {
      problem.replaceChildren();
      try {
        const found = state.by
          ? await get("groups", { by: state.by, where: state.where, sort })
          : await get("runs", { where: state.where, sort, columns: state.columns, offset, limit });
        words.textContent = state.by ? count(found.found, "group") : found.found === found.runs ? count(found.runs, "run") : `${found.found.toLocaleString("en")} of ${count(found.runs, "run")}`;
        return found;
      } catch (error) {
        problem.replaceChildren(errorBox(error));
        return { columns: [], rows: [], found: 0, runs: 0 };
      }
    },
    kinds: Object.fromEntries(known.columns.map((column) => [column.name, column.kind])),
    open: (row) => { location.hash = state.by ? groupLink(row) : link("run", [row.run]); },
    sorted: (sort) => { state.sort = sort; keep(); },
    selected: (runs) => { compareButton.disabled = runs.length !== 2; },
    sort: state.sort,
  });

  function groupLink(row) {
    const conditions = state.by.split(",").map((name) => condition(known, name, "=", row[name]));
    return link("runs", [], { where: [state.where && `(${state.where})`, ...conditions].filter(Boolean).join(" and ") });
  }

  function apply(where) {
    state.where = where.trim();
    if (filter.value.trim() !== state.where) filter.value = state.where;
    keep();
    grid.reload();
    drawPlot();
  }

  // Plot

  const plate = el("div", { class: "plate" }), caption = el("p", { class: "soft small" });
  const plotCard = el("section", { class: "card", hidden: true }, plate, caption);
  let plotted = 0;
  async function drawPlot() {
    plotCard.hidden = !(state.x && state.y);
    if (plotCard.hidden) return;
    const turn = ++plotted;
    try {
      const figure = await get("plot", { x: state.x, y: state.y, by: state.colour, where: state.where });
      if (turn !== plotted) return;
      caption.textContent = figure.caption;
      drawChart(plate, figure.spec);
    } catch (error) {
      plate.replaceChildren(errorBox(error));
      caption.textContent = "";
    }
  }
  const numbers = known.columns.filter((column) => column.kind === "number").map((column) => column.name);
  const varied = known.columns.filter((column) => column.distinct > 1).map((column) => column.name);
  const choose = (name, list, label) => el("label", {}, label, select([["", "\u2013"], ...list], state[name], (value) => { state[name] = value; keep(); drawPlot(); }, { "data-axis": name }));

  // Columns to show

  const boxes = names.map((name) => el("label", { class: "small" }, el("input", { type: "checkbox", checked: (state.columns ? state.columns.split(",") : known.shown).includes(name),
    value: name, onchange: () => { state.columns = boxes.map((box) => box.firstChild).filter((box) => box.checked).map((box) => box.value).join(","); keep(); grid.rebuild(); } }), ` ${name}`));

  place.replaceChildren(
    el("div", { class: "head" }, el("h1", {}, "Runs"), words, compareButton), live,
    el("div", { class: "tools" }, el("label", { class: "wide" }, "Filter (an SQL expression)", filter),
      conditionBuilder(known, (text) => apply([filter.value.trim(), text].filter(Boolean).join(" and "))),
      el("label", {}, "Group by", select([["", "\u2013 single runs"], ...varied.filter((name) => !["run", "made"].includes(name))], state.by, (value) => { state.by = value; state.sort = ""; keep(); grid.rebuild(); }, { "data-group": "" }))),
    problem,
    el("div", { class: "tools" }, choose("x", varied, "Plot x"), choose("y", numbers, "y"), choose("colour", varied, "colour"),
      el("details", { class: "small" }, el("summary", {}, "Columns"), el("div", { class: "form" }, boxes))),
    plotCard, grid.node, el("datalist", { id: "columns-known" }, names.map((name) => el("option", { value: `${name} ` }))));
  grid.start();
  drawPlot();
  let revision = null;
  return {
    key: (event) => grid.key(event),
    leave: () => grid.close(),
    news: (news) => {
      const open = (news?.requests || []).filter((request) => request.done < request.runs);
      live.replaceChildren(...open.map((request) => progressLine(request)));
      if (news && revision !== null && news.revision !== revision) grid.refresh();
      revision = news ? news.revision : revision;
    },
  };
}

function condition(known, name, sign, value) {
  const quoted = /^[A-Za-z_]\w*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
  if (value === null || value === undefined || value === "") return `${quoted} is null`;
  const kind = known.columns.find((column) => column.name === name)?.kind;
  const literal = kind === "number" && value !== "" && !Number.isNaN(Number(value)) ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
  return sign === "contains" ? `contains(${quoted}, ${literal})` : `${quoted} ${sign} ${literal}`;
}

function conditionBuilder(known, add) {
  const varied = known.columns.filter((column) => column.distinct > 0);
  const values = el("datalist", { id: "values-known" });
  const value = el("input", { type: "text", list: "values-known", "aria-label": "Value", size: 9, placeholder: "value", onkeydown: (event) => { if (event.key === "Enter") commit(); } });
  let name = "", sign = "=";
  const column = select([["", "column\u2026"], ...varied.map((each) => each.name)], "", (chosen) => {
    name = chosen;
    values.replaceChildren(...(varied.find((each) => each.name === name)?.values || []).map((each) => el("option", { value: String(each) })));
    value.value = "";
    value.focus();
  }, { "aria-label": "Column of a condition", "data-condition": "" });
  const signs = select(SIGNS, "=", (chosen) => { sign = chosen; }, { "aria-label": "Comparison" });
  function commit() {
    if (!name) return;
    add(condition(known, name, sign, value.value));
    value.value = "";
  }
  return el("label", {}, "Add a condition", el("span", { class: "joined" }, column, signs, value, el("button", { onclick: commit }, "Add")), values);
}

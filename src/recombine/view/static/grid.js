// The table of runs: Tabulator with rows that come as they are scrolled to, keyboard, and cells that are only text.

import { el, number } from "./dom.js";
import { shortRun, text } from "./pieces.js";
import { TabulatorFull } from "./vendor/tabulator.js";

const PAGE = 100;

function cellOf(name, value) {
  if (name === "run") return el("span", { class: "mono", title: value }, shortRun(String(value)));
  if (typeof value === "number") return el("span", {}, number(value));
  if (name === "made" && value) return el("span", { title: value }, String(value).replace("T", " ").slice(0, 16));
  return el("span", { title: text(value) }, text(value));
}

/**
 * Make a table.
 * @param options load({sort, offset, limit}): a promise of {columns, rows, found}; open(row); sorted(sort); selected(runs);
 *   kinds: the kind of each column; sort: how it is sorted first.
 */
export function makeGrid(options) {
  const node = el("div", { class: "grid", tabindex: 0, role: "region", "aria-label": "Table of runs" });
  let table = null, waiting = null, columns = [], sort = options.sort || "", current = -1, marked = new Set(), grouped = false;

  function column(name) {
    const numeric = options.kinds[name] === "number" || /_(low|high|n)$/.test(name) || name === "runs";
    return { field: name, hozAlign: numeric ? "right" : "left", headerHozAlign: numeric ? "right" : "left", minWidth: 70, maxInitialWidth: 220,
      title: name, titleFormatter: () => el("span", { title: name }, name), formatter: (cell) => cellOf(name, cell.getValue()), headerSortTristate: true };
  }

  function chooser() {
    return { field: "chosen", width: 40, headerSort: false, title: "", titleFormatter: () => el("span", { title: "Choose two to compare" }, "\u2611"),
      formatter: (cell) => el("input", { type: "checkbox", checked: marked.has(cell.getData().run), "aria-label": "Choose for a comparison", onclick: (event) => { event.stopPropagation(); mark(cell.getData().run, event.target.checked); } }) };
  }

  function mark(run, on) {
    if (on) marked.add(run);
    else marked.delete(run);
    options.selected([...marked]);
  }

  function records(found) {
    return found.rows.map((row) => Object.fromEntries(found.columns.map((name, index) => [field(name), row[index]])));
  }

  // Tabulator takes a dot in a field's name for a nested value.
  const field = (name) => name.replaceAll(".", "\u2024");
  const plainName = (name) => name.replaceAll("\u2024", ".");

  async function build() {
    const first = await options.load({ sort, offset: 0, limit: PAGE });
    table?.destroy();
    columns = first.columns;
    grouped = !columns.includes("run");
    current = -1;
    const holder = el("div", {});
    node.replaceChildren(holder);
    delete node.dataset.found;
    if (!first.rows.length) {
      holder.append(el("p", { class: "card soft" }, first.runs ? "No run matches." : "There are no runs yet: start a study or a sweep."));
      table = null;
      node.dataset.found = "0";
      return;
    }
    waiting = first;
    table = new TabulatorFull(holder, {
      height: Math.max(320, Math.min(window.innerHeight - 190, 44 + 36 * Math.max(4, first.found))), layout: "fitDataFill", renderVerticalBuffer: 300,
      columns: [...(grouped ? [] : [chooser()]), ...columns.map((name) => ({ ...column(name), field: field(name) }))],
      placeholder: "No run matches.", sortMode: "remote", progressiveLoad: "scroll", paginationSize: PAGE, progressiveLoadScrollMargin: 400, dataLoader: false,
      initialSort: sort ? [{ column: field(sort.replace(/^-/, "")), dir: sort.startsWith("-") ? "desc" : "asc" }] : [],
      ajaxURL: "api/runs",
      ajaxRequestFunc: async (url, config, { page, sort: sorters }) => {
        const wanted = sorters?.length ? `${sorters[0].dir === "desc" ? "-" : ""}${plainName(sorters[0].field)}` : "";
        if (wanted !== sort) { sort = wanted; options.sorted(sort); waiting = null; }
        const found = waiting && page === 1 ? waiting : await options.load({ sort, offset: (page - 1) * PAGE, limit: PAGE });
        waiting = null;
        return { last_page: grouped ? 1 : Math.max(1, Math.ceil(found.found / PAGE)), data: records(found) };
      },
    });
    table.on("rowClick", (event, row) => options.open(named(row.getData())));
    table.on("tableBuilt", () => { node.dataset.found = String(first.found); });
  }

  function named(data) {
    return Object.fromEntries(Object.entries(data).map(([name, value]) => [plainName(name), value]));
  }

  async function reload() {
    if (!table) return build();
    const turn = ++reload.turn;
    const found = await options.load({ sort, offset: 0, limit: PAGE });
    if (turn !== reload.turn) return;
    if (String(found.columns) !== String(columns) || !found.rows.length) return build();
    current = -1;
    waiting = found;
    await table.setData();
    node.dataset.found = String(found.found);
  }
  reload.turn = 0;

  function move(step) {
    const rows = table?.getRows("active") || [];
    if (!rows.length) return;
    rows[current]?.getElement().classList.remove("current");
    current = Math.max(0, Math.min(rows.length - 1, current + step));
    table.scrollToRow(rows[current], "nearest", false).catch(() => {});
    rows[current].getElement().classList.add("current");
  }

  return {
    node,
    start: build,
    rebuild: build,
    reload,
    refresh: () => reload(),
    chosen: () => [...marked],
    close: () => table?.destroy(),
    key: (event) => {
      const row = table?.getRows("active")[current];
      if (event.key === "j" || event.key === "ArrowDown") { event.preventDefault(); move(1); }
      else if (event.key === "k" || event.key === "ArrowUp") { event.preventDefault(); move(-1); }
      else if (event.key === "Enter" && row && !event.target.closest("a, button")) options.open(named(row.getData()));
      else if (event.key === "x" && row && !grouped) {
        mark(row.getData().run, !marked.has(row.getData().run));
        row.reformat();
        row.getElement().classList.add("current");
      }
    },
  };
}

// One setting of a form, made from the schema: its type, its limits, its choices.

import { el } from "./dom.js";
import { text } from "./pieces.js";

/** A text as the value that it means: a number, true, false, null, JSON, or the text itself. */
export function valueOf(given) {
  try { return JSON.parse(given); } catch { return given; }
}

function plain(value) {
  if (value === null || value === undefined) return "";
  return Array.isArray(value) ? value.map(text).join(",") : text(value);
}

/**
 * A field of a form.
 * @param field name, type, value, choices, least, most, description; several: whether commas make several values.
 * @param change Called with the new text, or null when the value is again what it was.
 */
export function settingField(field, change, given) {
  const usual = plain(field.value);
  const listed = field.choices?.length && !field.several;
  const id = `values-${field.name}`;
  const box = el("label", { class: "field" });
  const told = (value) => {
    box.classList.toggle("changed", value !== usual);
    change(value === usual ? null : value);
  };
  let input;
  if (field.type === "truth") {
    input = el("select", { onchange: () => told(input.value) }, ["true", "false"].map((each) => el("option", { value: each, selected: each === usual }, each)));
  } else if (listed) {
    input = el("select", { onchange: () => told(input.value) }, field.choices.map((each) => el("option", { value: each, selected: each === usual }, each)));
  } else {
    const single = (field.type === "whole" || field.type === "number") && !field.several;
    input = el("input", { type: single ? "number" : "text", value: given ?? usual, step: field.type === "whole" ? 1 : "any", min: single ? field.least : null, max: single ? field.most : null,
      list: field.choices?.length ? id : null, placeholder: field.optional ? "none" : "", onchange: () => told(input.value.trim()) });
  }
  input.dataset.setting = field.name;
  box.append(el("b", {}, field.name), input, field.choices?.length && !listed ? el("datalist", { id }, field.choices.map((each) => el("option", { value: each }))) : "",
    field.description ? el("small", {}, field.description) : "");
  if (given !== undefined) box.classList.add("changed");
  return box;
}

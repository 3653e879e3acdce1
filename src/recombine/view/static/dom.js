// Elements without markup: every text that comes from data becomes a text node, never HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.setAttribute("class", value);
    else if (name in node && name !== "list" && !(node instanceof SVGElement)) node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) node.append(child);
  }
  return node;
}

/** An HTML element. Properties whose names start with "on" are listeners; children are nodes or texts. */
export function el(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An SVG element. */
export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/** Only links inside the page and to known web addresses; anything else, such as javascript:, becomes "#". */
export function safeLink(address) {
  return /^(#|https?:|[\w./-]+$)/.test(address) ? address : "#";
}

const MINUS = "\u2212";

/** A number for readers: a real minus sign, about three significant digits. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "\u2013";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en").replace("-", MINUS);
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-3 ? value.toExponential(2) : value.toFixed(size < 10 ? 3 : 1);
  return text.replace("-", MINUS);
}

/** "1 run", "4 runs". */
export function count(amount, noun) {
  return `${amount.toLocaleString("en")} ${noun}${amount === 1 ? "" : "s"}`;
}

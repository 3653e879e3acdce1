// The Compare page.
import { el } from "../dom.js";
export async function show(place) { place.replaceChildren(el("h1", {}, "Compare")); return {}; }

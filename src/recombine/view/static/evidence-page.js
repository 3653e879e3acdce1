// The Evidence page by itself, without a server: it reads `recombineEvidence`, which evidence-data.js defines.

import { showEvidence } from "./evidence.js";

function showFromAddress() {
  const [study, claim] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const link = (...parts) => `#/${parts.filter(Boolean).map(encodeURIComponent).join("/")}`;
  showEvidence(document.getElementById("evidence"), window.recombineEvidence, { study, claim, link });
  if (!claim) window.scrollTo(0, 0);
}

window.addEventListener("hashchange", showFromAddress);
showFromAddress();

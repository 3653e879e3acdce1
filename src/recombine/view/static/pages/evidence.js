// The Evidence page in the viewer: the document of the server, figures and runs one study at a time.

import { get } from "../api.js";
import { link } from "../app.js";
import { drawChart } from "../chart.js";
import { showEvidence } from "../evidence.js";

export async function show(place, { parts }) {
  let data = await get("evidence"), studies = null;
  const draw = () => showEvidence(place, data, {
    study: parts[0],
    claim: parts[1],
    link: (study, claim) => link("evidence", [study, claim]),
    runLink: (run) => link("run", [run]),
    figures: (study) => (study.live ? get(`evidence/${encodeURIComponent(study.id)}/figures`) : Promise.resolve([])),
    runs: (study) => get(`evidence/${encodeURIComponent(study.id)}/runs`),
    chart: drawChart,
  });
  draw();
  return {
    news: async (state) => {
      if (studies !== null && studies !== state.studies && !parts.length) {
        data = await get("evidence");
        draw();
      }
      studies = state.studies;
    },
  };
}

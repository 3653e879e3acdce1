"""Charts inside an HTML page that needs no network: scripts, data, and a content security policy."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
from typing import Any

import altair as alt
import vl_convert
from altair.typing import ChartType

from recombine.store.files import finite

DRAW = """\
"use strict";
document.querySelectorAll("script[type='application/json'][data-chart]").forEach(function (source) {
  const place = document.getElementById(source.dataset.chart);
  // ast: expressions are interpreted, never compiled, so nothing in a chart can become code.
  const options = {
    ast: true,
    renderer: "svg",
    actions: {export: true, source: false, compiled: false, editor: false},
  };
  vegaEmbed(place, JSON.parse(source.textContent), options).catch(function (error) {
    place.textContent = "This figure could not be drawn: " + error.message;
  });
});
"""
"""Draws each chart in the element that its `data-chart` attribute names."""

SHARE = "window.vegaEmbed = vegaEmbed;"
"""Appended to the bundle, so that the page can call it."""


def vega_lite_version() -> str:
    """The Vega-Lite version of the installed Altair, in vl-convert's spelling."""
    return "_".join(alt.SCHEMA_VERSION.split(".")[:2])


@functools.cache
def vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script. Building it takes seconds, so it is cached."""
    bundle = vl_convert.javascript_bundle(SHARE, vega_lite_version())
    # These would end a script element. Escaped, they mean the same in JavaScript strings.
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def chart_json(chart: ChartType | dict[str, Any]) -> str:
    """A chart as JSON that is safe inside a script element, whatever the data contain."""
    spec = chart if isinstance(chart, dict) else chart.to_dict()
    text = json.dumps(finite(spec), allow_nan=False, separators=(",", ":"))
    # ASCII only, so the line separators U+2028 and U+2029 are escaped already.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def policy(*scripts: str) -> str:
    """A content security policy that allows only these scripts and loads nothing from elsewhere."""
    digests = (base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def figure_page(chart: ChartType, title: str, caption: str = "") -> str:
    """A complete HTML page with one chart. With a caption, the page shows title and caption too."""
    bundle = vega_bundle()
    heading = f"<h1>{html.escape(title)}</h1>\n" if caption else ""
    below = f"<p>{html.escape(caption)}</p>\n" if caption else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy(bundle, DRAW))}">\n'
        f"<title>{html.escape(title)}</title>\n</head>\n<body>\n"
        f'{heading}<div id="chart"></div>\n{below}'
        f'<script type="application/json" data-chart="chart">{chart_json(chart)}</script>\n'
        f"<script>{bundle}</script>\n<script>{DRAW}</script>\n</body>\n</html>\n"
    )

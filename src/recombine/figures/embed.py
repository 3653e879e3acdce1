"""Charts inside a page that needs no network: the scripts, the data, and a policy that forbids the rest."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import math
from typing import Any

import altair as alt
import vl_convert
from altair.typing import ChartType

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
"""Draws each chart in the element that its data names."""


SHARE = "window.vegaEmbed = vegaEmbed;"
"""What the script leaves behind for the page."""


def vega_lite_version() -> str:
    """The version of Vega-Lite that this Altair writes, as vl-convert spells it."""
    return "_".join(alt.SCHEMA_VERSION.split(".")[:2])


@functools.cache
def vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script. Takes seconds to make, so it is made once a process."""
    bundle = vl_convert.javascript_bundle(SHARE, vega_lite_version())
    # Inside a script element these would end it; as escapes they mean the same in JavaScript strings.
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def chart_json(chart: ChartType | dict[str, Any]) -> str:
    """A chart as JSON that may stand inside a script element, whatever its data say."""
    spec = chart if isinstance(chart, dict) else chart.to_dict()
    text = json.dumps(_finite(spec), allow_nan=False, separators=(",", ":"))
    # ASCII only, so the line separators U+2028 and U+2029 are escaped already.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def policy(*scripts: str) -> str:
    """A content security policy: these scripts run, no other does, and nothing is loaded from anywhere."""
    digests = (base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def figure_page(chart: ChartType, title: str) -> str:
    """One chart as a page of its own."""
    bundle = vega_bundle()
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy(bundle, DRAW))}">\n'
        f"<title>{html.escape(title)}</title>\n</head>\n<body>\n"
        '<div id="chart"></div>\n'
        f'<script type="application/json" data-chart="chart">{chart_json(chart)}</script>\n'
        f"<script>{bundle}</script>\n<script>{DRAW}</script>\n</body>\n</html>\n"
    )

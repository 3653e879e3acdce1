"""The Compare page."""

from __future__ import annotations

from typing import Any

from recombine.view.viewer import Viewer


def comparison(viewer: Viewer, a: str, b: str) -> dict[str, Any]:
    raise NotImplementedError

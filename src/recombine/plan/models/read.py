"""Recognise a model file, and turn it into the description of a plan."""

from __future__ import annotations

import re
from pathlib import Path

from recombine.errors import BadInput
from recombine.plan.models import acts, ctwedge, pict
from recombine.plan.models.source import Model, Source

LARGEST = 5_000_000
"""The largest model file in bytes."""


def read_model(path: Path) -> Model:
    """Read a model file of PICT, ACTS (text) or CTWedge, which are recognised by their content.

    Args:
        path: The file.

    Returns:
        Parameters, constraints in the planner's language, and groups of higher strength. Errors name line and column.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise BadInput(f"{path} has more than {LARGEST} bytes.", fix="give a model with parameters and constraints")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}.", fix="give a model file in UTF-8") from error
    source = Source(str(path), text)
    if not text.strip():
        raise BadInput(f"{path} is empty.", fix="write a line for each parameter: name: value, value")
    if re.search(r"(?mi)^\s*\[(system|parameters?)\]\s*$", text):
        return acts.read(source)
    if re.match(r"(?i)(\s|//.*|/\*[\s\S]*?\*/)*model\s+\w+\s+parameters\s*:", text):
        return ctwedge.read(source)
    if text.lstrip().startswith("<"):
        raise BadInput(f"{path} is XML.", fix="save the model of ACTS as text")
    return pict.read(source)

"""Worked examples to train on: what a model fails at, with values that the audit did not use."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from recombine.audit.tools.findings import FAILS, ToolsFindings
from recombine.audit.tools.questions import Notation, Wording, make_question, nestable_parameters, worked_example
from recombine.calling import Library

COPIES = 4
"""Examples of each chain."""
COMPANY = 2
"""Other functions around each failing pair, inside and outside."""
FRESH = 1000
"""Copies from this number on have values of their own, which no question has."""


def training_examples(
    findings: ToolsFindings, library: Library, *, wording: Wording, notation: Notation, depth: int, seed: int = 0
) -> list[dict[str, Any]]:
    """Examples of what fails: single functions alone, and each failing pair alone and in longer chains.

    Args:
        findings: The findings of the audit.
        library: The functions.
        wording: Names or descriptions.
        notation: Native or text.
        depth: The longest chain.
        seed: The seed of the values.

    Returns:
        Records with `messages` (and `tools`), as models are fine-tuned on them. Their values are not those of the questions.
    """
    copies = range(FRESH, FRESH + COPIES)
    return [
        worked_example(make_question(library, chain, wording, notation, seed=seed, copy=copy), library, notation)
        for chain in dict.fromkeys(_chains(findings, library, depth))
        for copy in copies
    ]


def _chains(findings: ToolsFindings, library: Library, depth: int) -> Iterator[tuple[str, ...]]:
    for function in findings.functions:
        if function.alone < FAILS:
            yield (function.name,)
    failing = {(pair.outer, pair.inner) for pair in findings.failing}
    for pair in findings.failing:
        yield pair.outer, pair.inner
        if depth > 2:
            inside = [
                name
                for name in library
                if nestable_parameters(library[pair.inner], library[name]) and (pair.inner, name) not in failing
            ]
            around = [
                name
                for name in library
                if nestable_parameters(library[name], library[pair.outer]) and (name, pair.outer) not in failing
            ]
            yield from ((pair.outer, pair.inner, name) for name in itertools.islice(inside, COMPANY))
            yield from ((name, pair.outer, pair.inner) for name in itertools.islice(around, COMPANY))

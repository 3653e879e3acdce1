"""`rc.audit(frame, ...)`: frames in, frames out."""

from __future__ import annotations

import itertools
import json

import pandas as pd
import pytest

import recombine as rc
from recombine.audit.findings import Advice


@pytest.fixture(scope="module")
def frame():
    rows = [
        (
            colour,
            thing,
            not (colour == "red" and thing != "ball"),
            "train" if (colour, thing) not in HELD_OUT else "test",
        )
        for colour, thing in itertools.product(("red", "blue", "green"), ("cup", "ball", "box"))
        for _ in range(2)
    ]
    return pd.DataFrame(rows, columns=["colour", "object", "success", "split"])


HELD_OUT = [("red", "cup"), ("red", "box"), ("blue", "cup")]


@pytest.fixture(scope="module")
def audit(frame):
    return rc.audit(frame, factors=["colour", "object"], scores="success", split=("split", "train"))


def test_it_is_the_audit_of_the_table(audit, frame):
    plain = rc.audit_table(frame, factors=["colour", "object"], scores="success", split=("split", "train"))
    assert {**audit.record(), "source": ""} == {**plain.record(), "source": ""}
    json.dumps(audit.record())
    assert audit._repr_html_() and repr(audit).startswith("Audit of a frame: 18 rows, 9 of 9 combinations")
    assert all(advice.sentence in audit.summary() for advice in audit.scores[0].advice)
    assert "some pairs unmet" in audit.summary()


def test_frames_and_the_page(audit, tmp_path):
    table = audit.tables["combinations"]
    assert len(table) == 9 and set(table["trained"]) == {True, False}
    assert audit.page(tmp_path / "audit.html").stat().st_size > 10_000


def test_what_to_collect_is_a_frame_for_the_planner(audit):
    import dataclasses

    wanted = (("colour=red", "object=cup"), ("object=box", "colour=red"), ("colour=red", "object=cup"))
    score = dataclasses.replace(audit.scores[0], advice=(Advice("rule", "Collect.", "because", wanted),))
    asked = dataclasses.replace(audit, scores=(score,)).collect
    assert asked.to_dict("list") == {"colour": ["red", "red"], "object": ["cup", "box"]}
    space = rc.ProductSpace(factors={"colour": ["red", "blue", "green"], "object": ["cup", "ball", "box"]})
    plan = rc.make_plan(space, collected=asked.to_dict("records"))
    assert ["red", "cup"] not in plan.names
    assert list(audit.collect.columns) == ["colour", "object"]

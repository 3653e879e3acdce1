"""How supports, certificates, regions and spaces show themselves in a terminal and in a notebook."""

from __future__ import annotations

import pytest

from recombine.spaces import ProductSpace, ScanSpace, SubsetSpace
from recombine.supports import MissingPart, Random, Regions

WIDE = ProductSpace(factors={f"factor {index}": 9 for index in range(60)})  # type: ignore[arg-type]
UGLY = ProductSpace(factors={"<b>colour</b>": ["<script>", "blue", "green"], "shape": 4})  # type: ignore[arg-type]


@pytest.mark.parametrize("space", [UGLY, WIDE, SubsetSpace(modules=1000, max_active=20), ScanSpace()], ids=str)
def test_a_repr_fits_a_screen_and_html_is_escaped(space: object):
    assert len(repr(space)) < 200
    page = space._repr_html_()  # type: ignore[attr-defined]
    assert "<table>" in page
    assert "<script" not in page
    assert "<b>colour" not in page


def test_a_short_repr_makes_the_space_again():
    for space in (SubsetSpace(modules=7, max_active=3), ScanSpace(), ProductSpace(factors={"a": 2, "b": 3})):  # type: ignore[arg-type]
        assert eval(repr(space)) == space
    assert repr(SubsetSpace(modules=7, max_active=3)) == "SubsetSpace(modules=7, max_active=3)"


def test_a_cut_repr_still_tells_spaces_apart():
    # Compiled programs are told apart by the repr of what is static in them.
    other = ProductSpace(factors={f"factor {index}": 9 + (index == 59) for index in range(60)})  # type: ignore[arg-type]
    assert repr(WIDE) != repr(other)
    assert repr(WIDE) == repr(ProductSpace(factors=WIDE.factors))


def test_supports_regions_and_certificates():
    space = SubsetSpace(modules=16, max_active=3)
    support = Random(number=40, reserve=100).draw(space, 0)
    assert repr(support) == "<Listed: training combinations 40 of 696, space up to 3 of 16, reserved for the test 100>"
    assert "40 of 696" in support._repr_html_()
    assert "<script" not in Random(number=7).draw(UGLY, 0)._repr_html_()
    regions = Regions(support, 3)
    assert repr(regions) == f"<Regions of {support!r}, seed 3>"
    text = repr(MissingPart(part=3).draw(space, 0).certificate())
    assert text.splitlines() == [
        "Certificate",
        "  training combinations         575 of 696",
        "  every constituent occurs      no: 1 of 16 never occur",
        "  constituents are connected    no: 2 separate groups",
        "  constituents are used evenly  no",
        "  constituents that occur       93.8 %",
        "  pairs that occur              87.5 %",
        "  sets of 3 that occur          81.2 %",
    ]
    assert "<td>no: 2 separate groups</td>" in MissingPart().draw(space, 0).certificate()._repr_html_()

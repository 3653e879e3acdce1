"""Which kinds of training support hurt, and which do not?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Column, Figures, Study, claim
from recombine.families import Family, Lookup
from recombine.models import MLP
from recombine.probes import CertificateOfSupport, Scores
from recombine.studies.paired_supports import Kinds, kinds_in_pairs, lost, scores_by_support
from recombine.studies.shapes import PAPER_RUN, control_fails, fits, other_family, skill
from recombine.supports import BySize, Disconnected, Gaps, Random
from recombine.training.config import RunConfig

COMPARED = {
    "balanced": "random",
    "popular": "random",
    "missing-part": "random",
    "halves": "random-as-halves",
    "unpopular": "random-as-unpopular",
    "published": "missing-part",
}
"""The support that each kind of support is compared with."""


class Supports(Study):
    """Which kinds of training support does a network recombine from?

    Held-out scores of networks trained on supports of every kind, beside the certificate of each support. Two kinds are
    compared within a replicate: they share a teacher, and only combinations count that both hold out.
    """

    kind: Literal["supports"] = "supports"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 8, "max_active": 3},
                "model": {"kind": "mlp", "width": 32, "depth": 2},
                "recipe": {"kind": "fast", "steps": 50},
            },
            "number": 40,
            "reserve": 40,
            "popular": 3,
            "gaps": {"kind": "gaps", "number": 25, "pairs": 3, "reserve": 30},
            "control_number": 15,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 4000},
        "workstation": {
            "base": {"model": {"kind": "mlp", "width": 256, "depth": 4}, "recipe": {"kind": "fast", "steps": 1500}},
            "replicates": 6,
            "first_seed": 4500,
        },
        "paper": {"base": PAPER_RUN},
    }
    shown: ClassVar[tuple[str, ...]] = (
        "size",
        "complete",
        "connected",
        "groups",
        "pairs_met",
        "usage_min",
        "score_in",
        "score_held_out",
        "score_all_pairs_met",
        "score_some_pairs_unmet",
        "score_part_unseen",
    )

    base: RunConfig = RunConfig(model=MLP(width=128, depth=3))
    """What all runs share; the arms set support and family."""
    number: PositiveInt = 320
    """Combinations of the random, balanced and popular supports."""
    reserve: NonNegativeInt = 376
    """Combinations that random supports of all sizes hold out. Other kinds hold out everything that they do not train on."""
    popular: PositiveInt = 4
    """The number of popular constituents."""
    factor: PositiveFloat = 2.0
    """Combinations per constituent in the support whose size is linear in the number of constituents."""
    gaps: Gaps = Gaps(number=256, reserve=200)
    """A support with an unseen constituent and unmet pairs. It is shown, and no claim is about it."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which held-out combinations must fail."""
    control_number: PositiveInt = 40
    """Combinations of the control: few, so that it can be learned at all."""

    def check(self) -> None:
        other_family(self)

    def kinds(self) -> Kinds:
        """The supports by name."""
        return {
            **kinds_in_pairs(self.base.space, self.number, self.reserve, self.popular),
            "published": Disconnected(groups="published"),
            "gaps": self.gaps,
            "by-size": BySize(rule="linear", factor=self.factor, reserve=self.reserve),
        }

    def arms(self) -> dict[str, Arm]:
        few = Random(number=self.control_number, reserve=self.reserve)
        return {
            "main": Arm(self.base, support=self.kinds()),
            "lookup": Arm(self.base, family=self.control, support=few),
        }

    def measurements(self) -> list[Any]:
        return [Scores(), CertificateOfSupport()]

    def claims(self, main: Arm, lookup: Arm) -> Claims:
        def loss(support: str) -> Column:
            """What is lost with a support, on the combinations that it and its rival hold out."""
            return lost(main, support, COMPARED[support], skill)

        compared = tuple(dict.fromkeys([*COMPARED, *COMPARED.values()]))
        yield fits(
            main["score_in"].at(support=compared).lowest(),
            "With every kind of support that is compared, the network fits its training tasks (lowest r2_in).",
        )
        yield claim(
            "disconnected-hurts",
            loss("halves").greater(),
            "Held-out R2 is lower when the constituents form two halves that never meet in training than with a connected "
            "random support of as many combinations (the same combinations of both halves, trained in neither).",
            primary=True,
            needs="fits",
            version=2,
        )
        yield claim(
            "missing-part-hurts",
            loss("missing-part").greater(),
            "R2 on combinations with a constituent that training left out is lower than with a random support that had the "
            "constituent, although that support has fewer combinations (the same held-out combinations).",
            needs="fits",
            version=2,
        )
        yield claim(
            "popular-does-not-hurt",
            loss("popular").equivalent(),
            "Held-out R2 is the same when every training combination has one of a few popular constituents as with a random "
            "support of as many combinations (the same held-out combinations).",
            needs="fits",
            version=2,
        )
        yield claim(
            "balance-does-not-matter",
            loss("balanced").equivalent(),
            "Held-out R2 is the same when all constituents are used equally often as with a random support of as many "
            "combinations (the same held-out combinations).",
            needs="fits",
            version=2,
        )
        yield claim(
            "unpopular-hurts",
            loss("unpopular").greater(),
            "Held-out R2 is lower when the constituents outside a core occur in one training combination each than with a "
            "random support of as many combinations (the same held-out combinations).",
            needs="fits",
            version=2,
        )
        yield claim(
            "published-is-nearly-missing",
            loss("published").equivalent(),
            "A constituent that training shows only by itself, as in the published disconnected support, is recombined as "
            "badly as one that training never shows (R2 on the same combinations with this constituent).",
            needs="fits",
            version=2,
        )
        yield from control_fails(
            lookup["score_in"],
            lookup["correlation_held_out"],
            "The network can learn the control: r2_in on independent random functions.",
            "On independent random functions, predictions for held-out combinations do not correlate with the truth "
            "(correlation within tasks).",
        )

    def figures(self, main: Arm, lookup: Arm) -> Figures:
        yield scores_by_support(
            pd.concat([main.frame, lookup.frame.assign(support="control")]),
            main.axes["support"],
            name="scores_by_support",
            title="Which training supports does a network recombine from?",
            floor=-0.5,
            x_title="R²",
        )

"""Do the same kinds of training support hurt in a grid world of preferences?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import NonNegativeInt, PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Column, Figures, Study, claim, control
from recombine.families import Family, LookupPreferences
from recombine.probes import CertificateOfSupport, Scores
from recombine.studies.paired_supports import Kinds, lost, scores_by_support, size_of, without_the_constituent_apart
from recombine.studies.shapes import PREFERENCES, SMOKE_PREFERENCES, fits, other_family
from recombine.studies.supports import Supports
from recombine.supports import Disconnected, Popular, Random
from recombine.training.config import RunConfig

NEEDS = ("preferences-fit", "preferences-recombine")


class PreferenceSupports(Study):
    """Which kinds of training support does a network recombine from in a grid world of preferences?

    The question of `supports`, asked of policies that imitate a teacher whose preferences are combined. In the control
    every combination has independent preferences.
    """

    kind: Literal["preference-supports"] = "preference-supports"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {"base": SMOKE_PREFERENCES, "control": {"kind": "lookup-preferences", "features": 6}, "replicates": 2},
        "demo": {"replicates": 3},
        "laptop": {},
        "paper": {
            "base": {
                "space": {"kind": "subset", "modules": 16, "max_active": 3},
                "family": "preferences",
                "model": {"kind": "mlp", "width": 1024, "depth": 2},
                "recipe": {"kind": "paper", "learning_rate": 1e-4, "weight_decay": 1e-3, "steps": 3_000_000},
                "eval_every": 1000,
            },
            "control": "lookup-preferences",
        },
    }
    shown: ClassVar[tuple[str, ...]] = Supports.shown

    base: RunConfig = PREFERENCES
    """What all runs share; the arms set support and family."""
    popular: PositiveInt = 2
    """The number of popular constituents."""
    control: field("families", Family) = LookupPreferences(features=6, objects=2, coefficients="k-hot")  # type: ignore[valid-type]
    """The family on which held-out combinations must fail."""
    first_seed: NonNegativeInt = 4000
    """Fresh seeds: with those from 1000 on, training was short and some claims were not decided."""

    def check(self) -> None:
        other_family(self)

    def kinds(self) -> Kinds:
        """The supports by name. The random and the popular one have as many combinations as the two halves."""
        space, halves = self.base.space, Disconnected()
        number = size_of(halves, space)
        return {
            "random": Random(number=number),
            "popular": Popular(parts=self.popular, number=number),
            "missing-part": lambda cell: without_the_constituent_apart(space, cell.seed),
            "halves": halves,
        }

    def arms(self) -> dict[str, Arm]:
        kinds = self.kinds()
        return {
            "main": Arm(self.base, support=kinds),
            "lookup": Arm(self.base, family=self.control, support=kinds["random"]),
        }

    def measurements(self) -> list[Any]:
        return [Scores(), CertificateOfSupport()]

    def claims(self, main: Arm, lookup: Arm) -> Claims:
        def loss(support: str) -> Column:
            """Accuracy lost with a support, on the combinations that it and the random support hold out."""
            return lost(main, support, "random")

        yield fits(
            main["score_in"].lowest(),
            "On preferences the network fits its training tasks with every kind of support (accuracy of whole episodes, the "
            "lowest over supports).",
            0.9,
            name="preferences-fit",
        )
        yield control(
            "preferences-recombine",
            (main["score_held_out"].at(support="random") - lookup["score_held_out"]).greater(0.05),
            "With the same random support, held-out accuracy is higher on preferences than on independent preferences for "
            "each combination, where nothing can be recombined.",
            needs="preferences-fit",
        )
        yield claim(
            "preferences-disconnected-hurts",
            loss("halves").greater(0.05),
            "On preferences, held-out accuracy is lower when the constituents form two halves that never meet than with as "
            "many random combinations.",
            needs=NEEDS,
        )
        yield claim(
            "preferences-missing-part-hurts",
            loss("missing-part").greater(0.05),
            "On preferences, accuracy on combinations with a constituent that training left out is lower than with a random "
            "support that had it.",
            needs=NEEDS,
        )
        yield claim(
            "preferences-popular-does-not-hurt",
            loss("popular").equivalent(0.05),
            "On preferences, held-out accuracy is the same when every training combination has a popular constituent as "
            "with as many random combinations.",
            needs=NEEDS,
        )

    def figures(self, main: Arm, lookup: Arm) -> Figures:
        yield scores_by_support(
            pd.concat([main.frame, lookup.frame.assign(support="control")]),
            main.axes["support"],
            name="scores_by_support_preferences",
            title="Is it the same on preferences?",
            floor=0.0,
            x_title="accuracy of whole episodes",
        )

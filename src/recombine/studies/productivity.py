"""Does a network go on to combine more constituents than it was ever shown together?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Column, Figures, Study, Tables, claim, precondition, statistic
from recombine.families import Family, Lookup
from recombine.models import MLP, Hypernetwork, Model
from recombine.probes import Scores
from recombine.spaces import SubsetSpace
from recombine.studies.paired_supports import on_common_combinations
from recombine.studies.shapes import ascending, control_fails, fits, other_family, skill
from recombine.supports import Random
from recombine.training.config import RunConfig

CONTROL = "control: independent functions"


class Productivity(Study):
    """Can a network that was trained with up to K active constituents handle K + 1 and K + 2 at once?

    Networks of several widths are trained on combinations of up to K constituents, and tested on K, K + 1 and K + 2. As
    combinations of other sizes are other tasks, networks that were also trained with K + 1 say how well K + 1 can be done.
    """

    kind: Literal["productivity"] = "productivity"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {"recipe": {"kind": "fast", "steps": 100}},
            "modules": 8,
            "trained": 2,
            "number": 25,
            "control_number": 12,
            "widths": (16, 64),
            "depth": 2,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 4000},
        "workstation": {
            "base": {"recipe": {"kind": "fast", "steps": 1500}},
            "modules": 16,
            "number": 522,
            "widths": (64, 256, 512),
            "depth": 4,
            "replicates": 6,
            "first_seed": 4500,
        },
        "paper": {
            "base": {"recipe": "paper", "eval_every": 100},
            "modules": 16,
            "number": 522,
            "widths": (128, 512, 1024),
            "depth": 4,
        },
    }
    shown: ClassVar[tuple[str, ...]] = ("r2_in", "correlation_held_out")

    base: RunConfig = RunConfig()
    """What all runs share; the arms set space, support and model."""
    modules: PositiveInt = 12
    """Constituents of the space."""
    trained: PositiveInt = 3
    """K: the most constituents of a training combination."""
    more: PositiveInt = 2
    """How many constituents beyond K are tested."""
    number: PositiveInt = 220
    """Training combinations."""
    control_number: PositiveInt = 40
    """Training combinations of the control: few enough to be memorised."""
    widths: tuple[PositiveInt, ...] = (32, 64, 128)
    """Widths of the plain network."""
    depth: PositiveInt = 3
    """Hidden layers of the plain network."""
    structured: field("models", Model) | None = Hypernetwork()  # type: ignore[valid-type]
    """A model with the form of the teacher, beside the plain ones; None leaves it out."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which the same must fail."""

    def check(self) -> None:
        other_family(self)
        ascending(self, "widths")

    def arms(self) -> dict[str, Arm | None]:
        main = Arm(
            self.base,
            space=SubsetSpace(modules=self.modules, max_active=self.trained + self.more),
            support=Random(number=self.number, most_active=self.trained),
            model=MLP(depth=self.depth),
            width=self.widths,
        )
        few = Random(number=self.control_number, most_active=self.trained)
        return {
            "main": main,
            "taught": main.replace(
                support=Random(number=self.number, most_active=self.trained + 1), width=self.widths[-1:]
            ),
            "structured": self.structured and main.replace(model=self.structured, width=None),
            "lookup": main.replace(family=self.control, support=few, width=self.widths[-1]),
        }

    def measurements(self) -> list[Any]:
        return [Scores(combinations=1024, draws=2)]

    def claims(self, main: Arm, taught: Arm, lookup: Arm, structured: Arm | None = None) -> Claims:
        most = self.trained

        def r2(parts: int, arm: Arm = main) -> Column:
            """R2 on held-out combinations with this number of constituents."""
            return arm.table(self.with_parts, parts=parts)["r2"]

        def fall(parts: int, arm: Arm = main) -> Column:
            """What is lost from one number of constituents to the next."""
            return skill(r2(parts, arm)) - skill(r2(parts + 1, arm))

        own, other = (
            skill(statistic(self.on_both, arm, beside, width=self.widths[-1], parts=most + 1))
            for arm, beside in ((main, taught), (taught, main))
        )
        yield fits(main["r2_in"].last(), "The widest network fits its training tasks (r2_in).")
        yield fits(
            taught["r2_in"].last(), "So does the one that is also trained with K + 1 (r2_in).", name="taught-fits"
        )
        yield precondition(
            "recombines",
            r2(most).last().above(0.5),
            "The widest network solves held-out combinations of the largest trained number of constituents (R2).",
        )
        yield claim(
            "loses",
            (other - own).greater(),
            "On combinations of K + 1 constituents, networks that were trained with up to K do worse than networks that were "
            "trained with up to K + 1 on as many combinations (the same held-out combinations, widest network).",
            primary=True,
            needs=("fits", "taught-fits", "recombines"),
            version=2,
        )
        yield claim(
            "falls",
            fall(most).last().greater(),
            "R2 falls with one constituent more than any training task had (held-out combinations of K constituents minus "
            "those of K + 1).",
            needs=("fits", "recombines"),
        )
        yield claim(
            "falls-more",
            fall(most + 1).last().greater(),
            "R2 falls again with the next constituent (K + 1 minus K + 2).",
            needs=("fits", "recombines"),
        )
        yield claim(
            "still-informed",
            r2(most + 1).last().above(0.0),
            "With K + 1 constituents the network does better than the mean of each task (R2).",
            needs="fits",
        )
        yield claim(
            "width-closes-the-gap",
            (-fall(most).rise()).greater(),
            "The fall from K to K + 1 is smaller in the widest network than in the narrowest.",
            needs="fits",
            version=2,
        )
        if structured is not None:
            yield claim(
                "structure-closes-the-gap",
                (fall(most).last() - fall(most, structured)).greater(),
                "The fall is smaller in the hypernetwork, which has the form of the teacher, than in the widest plain network.",
                needs="fits",
                version=2,
            )
        yield from control_fails(
            lookup["r2_in"],
            lookup.table(self.with_parts, parts=most + 1)["correlation"],
            "The network can learn the control (r2_in).",
            "On independent random functions, predictions for K + 1 constituents do not correlate with the truth (correlation).",
        )

    def on_both(self, tables: Tables, beside: Tables, width: int, parts: int) -> pd.Series:
        """R2 of the runs of one arm on the combinations of one size that they and those of another arm hold out."""
        if tables.combinations.empty or beside.combinations.empty:
            return pd.Series(dtype=float)
        frames = [self.held_out(each) for each in (tables, beside)]
        own, other = (frame[(frame["width"] == width) & (frame["parts"] == parts)] for frame in frames)
        return on_common_combinations(own, other, self.base.family)

    def held_out(self, tables: Tables) -> pd.DataFrame:
        """The held-out combinations of an arm: one row per run and combination."""
        frame = tables.combinations
        return frame[frame["region"].isin(["held_out", "validation"])]

    def by_parts(self, tables: Tables) -> pd.DataFrame:
        """R2 and correlation of held-out combinations by their number of constituents: one row per run and number."""
        labels = list(tables.labels)
        if tables.combinations.empty:
            return tables.combinations.reindex(columns=[*labels, "parts", "r2", "correlation"])
        return self.base.family.pooled(self.held_out(tables), [*labels, "parts"])

    def with_parts(self, tables: Tables, parts: int) -> pd.DataFrame:
        """The rows of `by_parts` for one number of constituents."""
        frame = self.by_parts(tables)
        return frame[frame["parts"] == parts]

    def overview_columns(self, tables: Tables) -> pd.DataFrame:
        wide = self.by_parts(tables).pivot(index="run", columns="parts", values="r2")
        return wide.rename(columns=lambda parts: f"r2_of_{parts}_constituents").reset_index()

    def figures(self, main: Arm, taught: Arm, lookup: Arm, structured: Arm | None = None) -> Figures:
        from recombine.figures.study import lines

        plain = self.by_parts(main.tables)
        networks = {f"MLP, width {width}": plain[plain["width"] == width] for width in self.widths}
        networks[f"MLP, trained with {self.trained + 1}"] = self.by_parts(taught.tables)
        if structured is not None and self.structured is not None:
            networks[self.structured.kind] = self.by_parts(structured.tables)
        networks[CONTROL] = self.by_parts(lookup.tables)
        frame = pd.concat([rows.assign(network=name) for name, rows in networks.items()])
        scores = {"r2": "R²", "correlation": "correlation"}
        yield lines(
            frame.melt(["replicate", "network", "parts"], list(scores), "measure", "value"),
            x="parts",
            y="value",
            series="network",
            facet="measure",
            name="score_by_parts",
            title="What happens beyond the trained number of constituents?",
            caption="Scores on combinations that were never trained, by their number of constituents. Training combinations had "
            f"at most {self.trained}, so points right of {self.trained} have more constituents than the network was ever shown "
            f"together; one network was also trained with {self.trained + 1}. R² is 1 where every answer is right and 0 where the mean of each task would do as well. The correlation "
            "within tasks says whether the answers still follow the truth when their size is wrong. In the control every "
            "combination is an independent function, so nothing can be recombined.",
            labels=list(networks),
            facet_labels=scores,
            controls=[CONTROL],
            log=False,
            floor=-0.25,
            ceiling=1.0,
            x_title="constituents of the held-out combination",
            y_title="score",
        )

"""Are the constituents of a task in the layers of networks that recombine, and does the network use them there?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field, PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Figures, Study, Tables, claim, control, precondition
from recombine.design.column import Column, highest, lowest, statistic
from recombine.design.replicates import one_per_run, rank_correlations, rows_with
from recombine.families import Family, IgnoredPart, Lookup
from recombine.models import MLP
from recombine.probes import Decodability as Probe, Erasure, FromEncoding, Readout, Scores, Swap
from recombine.stats import t_interval
from recombine.studies.shapes import SMOKE_SPACE, ascending, fits
from recombine.supports import Random
from recombine.training.config import RunConfig

FIRST = "hidden 1"
"""The layer that the encoding feeds directly: a probe that reads the constituents there proves nothing."""
CORRELATIONS: dict[str, dict[str, Any]] = {
    "at-equal-fit": {"layer": "intrinsic", "within": ("number", "width"), "covariates": ("r2_in",)},
    "within-size-and-width": {"layer": "intrinsic", "within": ("number", "width")},
    "within-size-and-width-middle": {"layer": "middle", "within": ("number", "width")},
    "within-size": {"layer": "intrinsic", "within": ("number",)},
}
"""Which layer's decodability is correlated with held-out R2, in which groups of networks, and what is partialled out."""
PROBE = {"form": "intrinsic", "network": "trained", "strength": "chosen"}


class Decodability(Study):
    """Are the constituents of a task linearly decodable in networks that recombine, and are they used?

    Decodability within support sizes and layer by layer, two causal tests, and what a theorem promises. The number of
    training combinations drives both decodability and generalisation, so they are compared within sizes. A correlation
    takes all replicates together: its number for one replicate is a pseudo-value of the jackknife.
    """

    kind: Literal["decodability"] = "decodability"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {"space": SMOKE_SPACE, "recipe": {"kind": "fast", "steps": 100}},
            **{"numbers": (25, 100), "reserve": 60, "other_widths": (), "other_numbers": ()},
            **{"width": 48, "depth": 2, "replicates": 2},
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 4000, "replicates": 24},
        "paper": {
            "base": {"space": {"kind": "subset", "modules": 16, "max_active": 4}, "recipe": "paper", "eval_every": 100},
            **{"numbers": (64, 256, 1024), "other_numbers": (64, 256, 1024), "reserve": 1000},
            **{"width": 1024, "other_widths": (256, 512), "depth": 4},
        },
    }
    shown: ClassVar[tuple[str, ...]] = ("r2_in", "r2_held_out", "intrinsic", "transfer", "selectivity", "efficacy_best")

    base: RunConfig = RunConfig()
    """What all runs share; the arms set model and support."""
    numbers: tuple[PositiveInt, ...] = (40, 80, 160, 320)
    """Numbers of training combinations, fewest first."""
    reserve: PositiveInt = 376
    """Combinations of the common test."""
    width: PositiveInt = 128
    """The width of the networks that are trained on every number and on the controls."""
    other_widths: tuple[PositiveInt, ...] = (58,)
    """Further widths, so that networks differ within a support size."""
    other_numbers: tuple[PositiveInt, ...] = (80, 320)
    """The numbers on which networks of other widths are trained."""
    depth: int = Field(default=3, ge=2)
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which nothing can be recombined."""
    ignored: IgnoredPart = IgnoredPart()
    """The family in which one part has no effect."""

    def check(self) -> None:
        ascending(self, "numbers")
        if not set(self.other_numbers) <= set(self.numbers):
            raise ValueError(f"other_numbers must be some of {self.numbers}, got {self.other_numbers}")
        if self.width in self.other_widths:
            raise ValueError(f"other_widths must differ from width {self.width}, got {self.other_widths}")

    @property
    def middle(self) -> str:
        """A layer in the middle, after the first."""
        return f"hidden {max(2, (self.depth + 1) // 2)}"

    @property
    def deepest(self) -> str:
        """The last hidden layer."""
        return f"hidden {self.depth}"

    def arms(self) -> dict[str, Arm | None]:
        shared = {"model": MLP(depth=self.depth), "support": Random(reserve=self.reserve)}
        main = Arm(self.base, **shared, width=(self.width,), number=self.numbers)
        others = main.replace(width=self.other_widths, number=self.other_numbers)
        return {
            "main": main,
            "others": others if self.other_widths and self.other_numbers else None,
            "lookup": main.replace(family=self.control, number=(self.numbers[0], self.numbers[-1])),
            "ignored": main.replace(family=self.ignored, number=(self.numbers[-1],)),
        }

    def measurements(self) -> list[Any]:
        return [Scores(), Probe(), Swap(), Erasure(), FromEncoding(), Readout()]

    def claims(self, main: Arm, lookup: Arm, ignored: Arm, others: Arm | None = None) -> Claims:
        # first() and last() are at the fewest and at the most training combinations.
        def read(site: str, **probe: str) -> Column:
            return main.table(one_per_run, table="decodability", site=site, **PROBE | probe)["r2"]

        def beyond_floors(layer: str) -> Column:
            floors = highest(main[f"floor_random{layer}"], main[f"floor_control{layer}"])
            return (main[f"efficacy{layer}"] - floors).last()

        yield fits(
            main["r2_in"].lowest(), "The networks fit their training tasks (main width; lowest r2_in over sizes)."
        )
        text = (
            "Among networks of one width and one support size that fit their training tasks equally well, those whose constituents "
            "are more decodable in the deepest layer (intrinsic) do better on held-out combinations (partial rank correlation with "
            "held-out R2, r2_in held fixed; teachers and first weights differ)."
        )
        networks = [main] if others is None else [main, others]
        effect = {name: statistic(self.correlations, *networks, **choice) for name, choice in CORRELATIONS.items()}
        yield claim("at-equal-fit", effect["at-equal-fit"].greater(0.1), text, primary=True, needs="fits")
        for name, text in (
            ("within-size-and-width", "The same without regard to the fit of training tasks."),
            ("within-size-and-width-middle", "The same for a middle layer."),
            ("within-size", "The same in the deepest layer with the widths mixed: width drives both sides."),
        ):
            yield claim(name, effect[name].greater(0.1), text, needs="fits")
        deepest, fade = read(self.deepest), read(FIRST) - read(self.deepest)
        text = (
            "With more training combinations decodability rises more by a probe fitted on trained combinations (transfer, as "
            "published) than by one with the same held-out ones everywhere (intrinsic): that much is the probe's own lack of data."
        )
        starves = read(self.deepest, form="transfer").rise() - deepest.rise()
        yield claim("probe-starves", starves.greater(0.05), text, needs="fits")
        text = "In networks trained on few combinations the constituents fade with depth (intrinsic, first minus deepest layer)."
        yield claim("fades", fade.first().greater(0.05), text, needs="fits")
        text = "They fade more than in networks trained on many combinations (intrinsic)."
        yield claim("fades-more", (-fade.rise()).greater(0.05), text, needs="fits")
        text = "With many combinations they are more decodable than before training (intrinsic, deepest layer)."
        learned = (deepest - read(self.deepest, network="untrained")).last()
        yield claim("learned", learned.greater(0.05), text, needs="fits")
        text = (
            "Swapping a constituent along the directions that a probe finds moves the network's answer towards that of the other "
            "task, more than either floor (efficacy, best layer that counts, chosen on validation combinations; many combinations)."
        )
        yield claim("swap", beyond_floors("_best").greater(0.1), text, needs="fits")
        text = "The same in the deepest layer, against either floor."
        yield claim("swap-deepest", beyond_floors("").greater(0.05), text, needs="fits")
        text = "In the deepest layer the swapped answer is nearer to that of the other task than without an edit (efficacy)."
        yield claim("swap-deepest-helps", main["efficacy"].last().above(0.0), text, needs="fits")
        text = "In the best layer the swap has half of the effect that any edit could have that ignores the input, or more (efficacy / ceiling of shifts)."
        share = (main["efficacy_best"] / main["ceiling_shift_best"]).last().above(0.5)
        yield claim("swap-share", share, text, needs="fits")
        erased = {site: main.table(one_per_run, table="erasure", site=site) for site in (FIRST, self.middle)}
        cost = {site: (table["random"] - table["after"]).last().greater(0.05) for site, table in erased.items()}
        text = "What was erased cannot be read again on other combinations (R2 of a new probe, middle layer)."
        yield precondition("erasure-holds", erased[self.middle]["decodable_after"].last().below(0.2), text)
        text = "Erasing the constituents from the first hidden layer costs more held-out R2 than erasing random subspaces of equal rank."
        yield claim("erasure-first", cost[FIRST], text, needs=("fits", "erasure-holds"))
        text = "The same in a middle layer: the network uses there what a probe reads."
        yield claim("erasure-middle", cost[self.middle], text, needs=("fits", "erasure-holds"))
        bound, slack = (lowest(main[name].first(), lookup[name].first()) for name in ("bound_in", "slack_in"))
        text = "On trained combinations the theorem promises something: its bound, 1 - sqrt(share of wrong answers)."
        yield precondition("theorem-says-something", bound.above(0.2), text)
        text = (
            "From the codes of tasks on which a network is right the constituents are recovered at least as often as the "
            "theorem says (share of tasks minus its bound; the lower of family and control, few combinations)."
        )
        yield claim("theorem", slack.above(0.0), text, needs="theorem-says-something")
        text = "The network can learn the control: r2_in with the fewest combinations."
        yield precondition("control-is-learned", lookup["r2_in"].first().above(0.3), text)
        text = (
            "A probe reads parts, not whole combinations, better where they can be recombined than on independent random "
            "functions (selectivity, deepest layer, few combinations)."
        )
        selectivity = main["selectivity"].first() - lookup["selectivity"].first()
        yield claim("selectivity", selectivity.greater(0.05), text, needs=("fits", "control-is-learned"))
        needs = "control-is-learned"
        text = "On independent random functions nothing is recombined (correlation within held-out tasks, mean of few and many)."
        yield control(
            "control-stays-at-zero", lookup["correlation_held_out"].mean().equivalent(0.05), text, needs=needs
        )
        text = (
            "On independent random functions the constituents are decodable all the same, more than before training "
            "(intrinsic, few combinations): decodability alone does not show that a network recombines."
        )
        decodable = (lookup["intrinsic"] - lookup["intrinsic_untrained"]).first()
        yield control("control-is-decodable", decodable.greater(0.05), text, needs=needs)
        text = "On independent random functions a swap gives no right answer (R2 by the teacher's answers, best layer)."
        yield control("control-swap-misses", lookup["accuracy_best"].first().below(0.0), text, needs=needs)
        text = "Where a network is wrong (held-out independent functions) the theorem's decoder finds nothing (share of tasks)."
        yield control("control-not-recovered", lookup["recovered"].first().below(0.2), text, needs=needs)
        text = "The network fits the family with an ignored part (r2_in)."
        yield fits(ignored["r2_in"], text, name="ignored-is-learned")
        text = (
            "A part that the input names and that has no effect is lost in the deepest layer: combinations that hold it are read "
            "worse than others, beyond the same difference where the part has an effect (error as a share of the spread)."
        )
        excess = statistic(self.excess_error, ignored) - statistic(self.excess_error, main)
        yield control("ignored-part-fades", excess.greater(0.05), text, needs="ignored-is-learned")

    def networks(self, *arms: Tables) -> pd.DataFrame:
        """One row per network of the family: its scores, and the decodability of its deepest and of a middle layer."""
        runs = pd.concat([tables.runs for tables in arms], ignore_index=True)
        middle = pd.concat([one_per_run(tables, "decodability", site=self.middle, **PROBE) for tables in arms])
        runs = runs.reindex(columns=["run", "replicate", "width", "number", "intrinsic", "r2_in", "r2_held_out"])
        return runs.merge(middle.reindex(columns=["run", "r2"]).rename(columns={"r2": "middle"}), on="run", how="left")

    def correlations(self, *arms: Tables, layer: str, within: tuple[str, ...], covariates: tuple[str, ...] = ()) -> Any:
        """The rank correlation of a layer's decodability with held-out R2 within groups, as one number per replicate."""
        frame, rows = self.networks(*arms), len(self.numbers) + len(self.other_widths) * len(self.other_numbers)
        return rank_correlations(frame, layer, "r2_held_out", within, self.seeds, rows, covariates)

    def excess_error(self, tables: Tables) -> pd.Series:
        """How much worse a probe reads the held-out combinations that hold the part than the others, by replicate.

        Errors are shares of the spread of task vectors. Errors on other parts are in both means, so the difference shows
        how this part is read: it is large where the layer has lost the part.
        """
        read = rows_with(tables, "readout", number=self.numbers[-1])
        read = read.reindex(columns=["run", "replicate", "combination", "error"])
        names = tables.combinations.reindex(columns=["run", "combination", "constituents"])
        frame = read.merge(names.drop_duplicates(["run", "combination"]), on=["run", "combination"])
        holds = np.array([self.ignored.part in list(parts) for parts in frame["constituents"]], dtype=bool)
        worse, usual = (frame[rows].groupby("replicate")["error"].mean() for rows in (holds, ~holds))
        return worse - usual

    def figures(self, main: Arm, lookup: Arm, others: Arm | None = None) -> Figures:
        from recombine.figures.layers import erasure_by_layer, forms_by_layer, swap_by_layer
        from recombine.figures.study import scatter

        few, many = self.numbers[0], self.numbers[-1]
        numbers = {number: f"{number} combinations" for number in self.numbers}
        networks = [arm.tables for arm in (main, others) if arm is not None]
        frame, notes = self.networks(*networks), []
        for name, words in (("within-size", "within size"), ("at-equal-fit", "within size and width, at equal fit")):
            values = self.correlations(*networks, **CORRELATIONS[name])
            if np.isfinite(values).sum() > 1:
                interval = t_interval(values[np.isfinite(values)])
                mean, low, high = np.clip((interval.estimate, interval.low, interval.high), -1, 1)
                notes.append(f"{words} {mean:.2f} ({low:.2f} to {high:.2f})")
        names = "width " + frame["width"].astype(str) + ", replicate " + frame["replicate"].astype(str)
        yield scatter(
            frame.assign(name=names),
            x="intrinsic",
            y="r2_held_out",
            group="number",
            point_name="name",
            name="decodability_within_size",
            title="Do networks that keep the constituents generalise better?",
            caption="One point per network. Both measures rise with the number of training combinations (colour), so only the "
            "relation within a colour says that networks that keep the constituents are those that recombine. Within a colour "
            f"teachers and first weights differ, and widths {sorted((self.width, *self.other_widths))} where there are several. Clouds of one colour that "
            "lie far apart are networks of different widths, which the second correlation leaves out.",
            labels=numbers,
            ordered=True,
            fit="common",
            note=f"rank correlation {'; '.join(notes)}" if notes else "",
            x_title="decodability in the deepest layer (intrinsic R²)",
            y_title="held-out R²",
        )
        series = {
            numbers[few]: rows_with(main.tables, "decodability", number=few, network="trained"),
            numbers[many]: rows_with(main.tables, "decodability", number=many, network="trained"),
            f"control: independent functions, {few}": rows_with(
                lookup.tables, "decodability", number=few, network="trained"
            ),
            "before training": rows_with(main.tables, "decodability", number=many, network="untrained"),
        }
        yield forms_by_layer(
            pd.concat([frame.assign(series=name) for name, frame in series.items()], ignore_index=True),
            series="series",
            title="Where do the constituents fade?",
            caption="In the control each combination is an independent function, and there is nothing to recombine; "
            "`before training` is the same network at its first weights.",
            labels=list(series),
            controls=list(series)[2:],
        )
        panels = {"facet": "number", "facet_labels": numbers}
        tables = (main.tables["swap"], main.tables["erasure"])
        swap, erasure = (table[table["number"].isin((few, many))] for table in tables)
        yield swap_by_layer(swap, title="Does the network use what is read?", **panels)
        yield erasure_by_layer(erasure, title="Does the network need what is read?", **panels)

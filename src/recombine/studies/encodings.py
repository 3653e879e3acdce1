"""Does it matter how a network is told the combination?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import PositiveInt

from recombine.component import field
from recombine.encodings.base import Encoding
from recombine.encodings.few_shot import FewShot
from recombine.encodings.identity import Identity
from recombine.encodings.interval_shuffle import IntervalShuffle
from recombine.encodings.invertible import Invertible
from recombine.encodings.orthogonal import Orthogonal
from recombine.encodings.tokens import Tokens
from recombine.families.base import Family
from recombine.families.hyperteacher import Hyperteacher
from recombine.families.lookup import Lookup
from recombine.models.mlp import MLP
from recombine.probes.base import Measurement
from recombine.probes.decodability import Decodability
from recombine.probes.scores import Scores
from recombine.recipes.base import Recipe
from recombine.recipes.fast import Fast
from recombine.spaces.subset import SubsetSpace
from recombine.studies.base import Effect, Study, Tables, claims_of
from recombine.studies.reduce import at
from recombine.supports.random import Random
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

PUBLISHED = {
    "identity": {"task_decoder": 0.95, "input_decoder": 1.00, "generalisation": 1.00},
    "orthogonal": {"task_decoder": 0.96, "input_decoder": 1.00, "generalisation": 1.00},
    "tokens": {"task_decoder": 0.99, "input_decoder": 1.00, "generalisation": 1.00},
    "invertible": {"task_decoder": 0.94, "input_decoder": 0.56, "generalisation": 0.95},
    "interval-shuffle": {"task_decoder": 0.96, "input_decoder": 0.73, "generalisation": 0.98},
    "few-shot": {"task_decoder": 0.90, "input_decoder": -0.23, "generalisation": 0.97},
}
"""R2 of the published table: the best hidden layer's decoder, the encoding's own, and held-out tasks."""

NAMING = tuple(name for name in PUBLISHED if name != "few-shot")
"""The encodings that name the task; few-shot shows examples of it instead."""

FEW_SHOT = RunConfig(
    space=SubsetSpace(modules=8, max_active=3),
    family=Hyperteacher(inputs=4, hidden=4, outputs=4),
    encoding=FewShot(shots=20),
    model=MLP(width=256, depth=3),
    recipe=Fast(steps=1000),
    every=50,
)
"""A reduced teacher: at published sizes inferring the task from examples takes many minutes a network."""


Longer = tuple[tuple[str, PositiveInt], ...]
"""Encodings that take longer to learn than the others, with their steps."""


def recipe_for(encoding: Encoding, base: RunConfig, longer: Longer) -> Recipe:
    """The recipe of a run, with the steps that its encoding takes."""
    return base.recipe.model_copy(update={"steps": dict(longer).get(encoding.kind, base.recipe.steps)})


_claim = claims_of("encodings")


CLAIMS = (
    _claim(
        "fits",
        "Under every encoding that names the task the network fits its training tasks (lowest r2_in).",
        "above",
        0.8,
        role="precondition",
    ),
    _claim(
        "all-generalise",
        "Under every encoding that names the task the network solves held-out combinations (lowest held-out R2).",
        "above",
        0.9,
        primary=True,
        needs=("fits",),
    ),
    *(
        _claim(
            f"as-published-{name}",
            f"Under `{name}` held-out R2 is the published {PUBLISHED[name]['generalisation']:.2f} (difference).",
            "equivalent",
            0.03,
        )
        for name in PUBLISHED
    ),
    _claim(
        "few-shot-generalises",
        "A network that is only shown examples of the task solves held-out combinations (R2, reduced teacher).",
        "above",
        0.85,
    ),
    _claim(
        "decoded-where-the-input-hides-it",
        "Where the encoding hides the parts from a linear decoder (interval shuffle), the hidden layers show them more "
        "clearly than the encoding does (intrinsic decodability, mean over layers).",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "control-is-learned",
        "The network can learn the control, under the plainest and the hardest encoding (lowest r2_in).",
        "above",
        0.3,
        role="precondition",
    ),
    _claim(
        "control-stays-at-zero",
        "On independent random functions predictions for held-out combinations have nothing to do with the truth under "
        "either (correlation, mean of both).",
        "equivalent",
        0.05,
        role="control",
        needs=("control-is-learned",),
    ),
)
"""Stated before any run, and versioned with this file."""


class Encodings(Study):
    """Six ways to tell a network its task, ours beside the published table."""

    kind: Literal["encodings"] = "encodings"
    question: ClassVar[str] = (
        "Does a network recombine whichever way it is told the combination: as a vector, rotated, as tokens, "
        "scrambled, or only by examples?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 8, "max_active": 2},
                "model": {"kind": "mlp", "width": 32, "depth": 2},
                "recipe": {"kind": "fast", "steps": 50},
            },
            "few_shot": {
                "space": {"kind": "subset", "modules": 6, "max_active": 2},
                "family": {"kind": "hyperteacher", "inputs": 4, "hidden": 4, "outputs": 4},
                "encoding": {"kind": "few-shot", "shots": 6},
                "model": {"kind": "mlp", "width": 32, "depth": 2},
                "recipe": {"kind": "fast", "steps": 50},
            },
            "control_base": {
                "space": {"kind": "subset", "modules": 8, "max_active": 2},
                "support": {"kind": "random", "number": 12},
                "model": {"kind": "mlp", "width": 32, "depth": 2},
                "recipe": {"kind": "fast", "steps": 50},
            },
            "longer": (),
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {"model": {"kind": "mlp", "width": 1024, "depth": 4}, "recipe": "paper", "every": 100},
            "longer": (),
            "few_shot": {
                "encoding": "few-shot",
                "model": {"kind": "mlp", "width": 2048, "depth": 4},
                "recipe": "paper",
                "every": 100,
            },
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("family", "encoding")

    base: RunConfig = RunConfig(model=MLP(width=256, depth=4))
    """What the runs of the encodings that name the task share; a quarter of the combinations is held out."""
    encodings: tuple[field("encodings", Encoding), ...] = (  # type: ignore[valid-type]
        Identity(),
        Orthogonal(),
        Tokens(),
        Invertible(),
        IntervalShuffle(),
    )
    longer: Longer = (("interval-shuffle", 1500),)
    few_shot: RunConfig = FEW_SHOT
    """The run in which the task is shown by examples."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    control_encodings: tuple[str, ...] = ("identity", "interval-shuffle")
    """The encodings under which the control is run: the plainest and the hardest."""
    control_base: RunConfig = RunConfig(model=MLP(width=128, depth=3), support=Random(number=40, reserve=376))
    """The runs of the control: few combinations, so that they can be memorised."""

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        found = []
        for seed in self.seeds:
            for encoding in self.encodings:
                labels = {"replicate": seed, "encoding": encoding.kind}
                recipe = recipe_for(encoding, self.base, self.longer)
                main = self.run(self.base, seed, encoding=encoding, recipe=recipe)
                found.append((main, labels | {"family": self.base.family.kind}))
                if encoding.kind in self.control_encodings:
                    recipe = recipe_for(encoding, self.control_base, self.longer)
                    changes = {"encoding": encoding, "family": self.control, "recipe": recipe}
                    control = self.run(self.control_base, seed, **changes)
                    found.append((control, labels | {"family": self.control.kind}))
            labels = {"replicate": seed, "encoding": "few-shot", "family": self.base.family.kind}
            found.append((self.run(self.few_shot, seed), labels))
        return found

    def measurements(self) -> list[Measurement]:
        return [Scores(), Decodability()]

    def decoders(self, tables: Tables) -> pd.DataFrame:
        """Intrinsic decodability of the code itself and of the hidden layers (mean and deepest), a row a run."""
        import pandas as pd

        labels = ["replicate", "family", "encoding"]
        probes = tables.probes
        if probes.empty:
            return pd.DataFrame(columns=[*labels, "input_decoder", "hidden_decoder", "deepest_decoder"])
        chosen = probes[
            (probes["form"] == "intrinsic")
            & (probes["strength"] == "chosen")
            & (probes["network"] == "trained")
        ]
        hidden = chosen[chosen["site"].str.startswith("hidden")].groupby(labels)["r2"]
        code = chosen[chosen["site"] == "encoding"].set_index(labels)["r2"]
        return pd.DataFrame(
            {"input_decoder": code, "hidden_decoder": hidden.mean(), "deepest_decoder": hidden.last()}
        ).reset_index()

    def effects(self, tables: Tables) -> list[Effect]:
        def score(name: str, encoding: str, family: str) -> Float[np.ndarray, " replicate"]:
            return at(tables.runs, name, self.seeds, family=family, encoding=encoding)

        main, control = self.base.family.kind, self.control.kind
        kinds = [encoding.kind for encoding in self.encodings]
        controls = [kind for kind in kinds if kind in self.control_encodings]
        held_out = {kind: score("r2_held_out", kind, main) for kind in (*kinds, "few-shot")}
        decoders = self.decoders(tables)
        scrambled = {
            name: at(decoders, name, self.seeds, family=main, encoding="interval-shuffle")
            for name in ("hidden_decoder", "input_decoder")
        }
        values = {
            "decoded-where-the-input-hides-it": scrambled["hidden_decoder"] - scrambled["input_decoder"],
            "fits": np.min([score("r2_in", kind, main) for kind in kinds], axis=0),
            "all-generalise": np.min([held_out[kind] for kind in kinds], axis=0),
            "few-shot-generalises": held_out["few-shot"],
            "control-is-learned": np.min([score("r2_in", kind, control) for kind in controls], axis=0),
            "control-stays-at-zero": np.mean(
                [score("correlation_held_out", kind, control) for kind in controls], axis=0
            ),
        }
        for kind in held_out:
            if kind in PUBLISHED:
                values[f"as-published-{kind}"] = held_out[kind] - PUBLISHED[kind]["generalisation"]
        return [Effect(claim, values[claim.name]) for claim in CLAIMS if claim.name in values]

    def overview(self, tables: Tables) -> pd.DataFrame:
        """Ours beside the published table; means over replicates."""
        import pandas as pd

        runs = tables.runs.reindex(columns=tables.runs.columns.union(["r2_in", "r2_held_out"]))
        joined = runs.merge(self.decoders(tables), on=["replicate", "family", "encoding"], how="left")
        shown = ["r2_in", "r2_held_out", "input_decoder", "hidden_decoder", "deepest_decoder"]
        grouped = joined.groupby(["family", "encoding"], sort=False)
        frame = grouped[shown].apply(lambda part: part.astype(float).mean())
        frame.insert(0, "n", grouped["r2_in"].count())
        frame = frame.reset_index()
        published = pd.DataFrame(PUBLISHED).T.add_prefix("published_").rename_axis("encoding").reset_index()
        published["family"] = self.base.family.kind
        return frame.merge(published, on=["family", "encoding"], how="left")

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.figures.base import Figure
        from recombine.figures.dots import dots_info, draw_dots

        runs = tables.runs[tables.runs["family"] == self.base.family.kind]
        runs = runs.reindex(columns=runs.columns.union(["r2_in", "r2_held_out"]))
        frame = runs.merge(
            self.decoders(tables).drop(columns="family"), on=["replicate", "encoding"], how="left"
        )
        kinds = [*(encoding.kind for encoding in self.encodings), "few-shot"]
        published = {name: row for name, row in PUBLISHED.items() if name in kinds}
        info = dots_info(
            frame,
            "encoding",
            {"r2_held_out": "held-out R²", "input_decoder": "parts read off the encoding"},
            labels={name: name for name in kinds},
            published={
                "r2_held_out": {name: row["generalisation"] for name, row in published.items()},
                "input_decoder": {name: row["input_decoder"] for name, row in published.items()},
            },
            columns=True,
            floor=-0.5,
            ceiling=1.0,
            caption_lead=(
                "Left: R² on combinations that were never trained. Right: how well a linear map reads the parts off the "
                "encoding itself. Few-shot has a reduced teacher."
            ),
        )
        return [Figure("encodings", "Does it matter how the task is told?", info.caption, draw_dots(info))]

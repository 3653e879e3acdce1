"""recombine: can a neural network recombine what it knows, why, and what data would make it so?

The public names below are imported on first use, so that `import recombine` and `recombine --help` are quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "SubsetSpace": "recombine.spaces.subset",
    "ProductSpace": "recombine.spaces.product",
    "Random": "recombine.supports.random",
    "MissingPart": "recombine.supports.missing_part",
    "Listed": "recombine.supports.listed",
    "Given": "recombine.supports.given",
    "Regions": "recombine.supports.regions",
    "Hyperteacher": "recombine.families.hyperteacher",
    "Lookup": "recombine.families.lookup",
    "Identity": "recombine.encodings.identity",
    "MLP": "recombine.models.mlp",
    "Regression": "recombine.objectives.regression",
    "Fast": "recombine.recipes.fast",
    "Paper": "recombine.recipes.paper",
    "RunConfig": "recombine.training.config",
    "Seeds": "recombine.training.config",
    "Setting": "recombine.training.prepare",
    "train": "recombine.training.train",
    "Scores": "recombine.probes.scores",
    "Decodability": "recombine.probes.decodability",
    "Claim": "recombine.stats.verdicts",
    "judge": "recombine.stats.verdicts",
    "settle": "recombine.stats.verdicts",
    "Store": "recombine.store.store",
    "LocalEngine": "recombine.engines.local",
    "plot_curves": "recombine.figures.single_run",
    "make_plan": "recombine.plan.planner",
    "audit_table": "recombine.audit.audit",
    "audit_model": "recombine.audit.models",
    "ask_model": "recombine.audit.models",
    "RecombineError": "recombine.errors",
}

__all__ = ["__version__", *_PUBLIC]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'recombine' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from recombine.audit.audit import audit_table
    from recombine.audit.models import ask_model, audit_model
    from recombine.encodings.identity import Identity
    from recombine.engines.local import LocalEngine
    from recombine.errors import RecombineError
    from recombine.families.hyperteacher import Hyperteacher
    from recombine.families.lookup import Lookup
    from recombine.figures.single_run import plot_curves
    from recombine.models.mlp import MLP
    from recombine.objectives.regression import Regression
    from recombine.plan.planner import make_plan
    from recombine.probes.decodability import Decodability
    from recombine.probes.scores import Scores
    from recombine.recipes.fast import Fast
    from recombine.recipes.paper import Paper
    from recombine.spaces.product import ProductSpace
    from recombine.spaces.subset import SubsetSpace
    from recombine.stats.verdicts import Claim, judge, settle
    from recombine.store.store import Store
    from recombine.supports.given import Given
    from recombine.supports.listed import Listed
    from recombine.supports.missing_part import MissingPart
    from recombine.supports.random import Random
    from recombine.supports.regions import Regions
    from recombine.training.config import RunConfig, Seeds
    from recombine.training.prepare import Setting
    from recombine.training.train import train

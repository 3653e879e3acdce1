"""recombine: can a neural network recombine what it knows, why, and what data would make it so?

The main jobs are functions: `rc.run` (a study), `rc.sweep` (a grid of runs), `rc.train` (one run), `rc.audit_table` and
`rc.audit_model` (your model), `rc.make_plan` (your data). `rc.view` shows any of their results. Components are in their
packages: `rc.supports.Random`, `rc.models.Transformer`, `rc.probes.Scores`. Names load on first use, so `import recombine`
is quick.

Example:
    ```python
    import recombine as rc

    result = rc.run("data-scaling", profile="demo")
    result.verdicts  # a DataFrame
    result.report("report.html")
    ```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine import (
        audit as audit,
        cppn as cppn,
        design as design,
        encodings as encodings,
        engines as engines,
        families as families,
        figures as figures,
        graphs as graphs,
        models as models,
        objectives as objectives,
        plan as plan,
        probes as probes,
        problems as problems,
        recipes as recipes,
        spaces as spaces,
        stats as stats,
        store as store,
        supports as supports,
        trackers as trackers,
        training as training,
        view as view,
    )
    from recombine.audit.asking.ask import ask_model as ask_model, audit_model as audit_model
    from recombine.audit.audit import audit_table as audit_table
    from recombine.audit.experts import experts as experts
    from recombine.audit.pruning import subnetwork as subnetwork
    from recombine.cppn.scores import sweep_asymmetry as sweep_asymmetry
    from recombine.design.api import run as run, sweep as sweep
    from recombine.design.arm import Arm as Arm
    from recombine.design.claims import claim as claim, control as control, precondition as precondition
    from recombine.design.column import statistic as statistic
    from recombine.design.study import Study as Study
    from recombine.engines.local import LocalEngine as LocalEngine
    from recombine.errors import RecombineError as RecombineError
    from recombine.figures.curves import plot_curves as plot_curves
    from recombine.plan.planner import make_plan as make_plan
    from recombine.registry import register as register
    from recombine.spaces.product import ProductSpace as ProductSpace
    from recombine.spaces.subset import SubsetSpace as SubsetSpace
    from recombine.store.store import Store as Store, load_store as load_store
    from recombine.training.config import RunConfig as RunConfig, Seeds as Seeds
    from recombine.training.trainer import train as train

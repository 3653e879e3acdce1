"""Plans: which combinations to collect, so that a model can learn to recombine them.

`make_plan` chooses the combinations and returns a `Plan`. `read_spec` reads a space, its constraints and its costs from
a file, and `read_collected` reads the combinations that exist already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.plan.collected import read_collected as read_collected
    from recombine.plan.costs import Costs as Costs, make_costs as make_costs
    from recombine.plan.forecast import (
        Forecast as Forecast,
        forecast_scores as forecast_scores,
        read_scores as read_scores,
    )
    from recombine.plan.planner import Plan as Plan, make_plan as make_plan
    from recombine.plan.spec import (
        PlanSpec as PlanSpec,
        levels_space as levels_space,
        read_spec as read_spec,
        subsets_space as subsets_space,
    )

"""Statistics: claims and verdicts, intervals over replicates, corrections, regressions, scaling laws, forecasts.

`judge` gives the verdict on one `Claim` from one effect per replicate; `settle` corrects several verdicts for their
number. `t_interval` and `bootstrap_interval` give intervals, `fit_logistic`, `fit_logistic_mixed` and `within_slope` regressions,
`fit_law` and `forecast` scaling laws, `reached` and `censored_slope` thresholds along a curve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.stats.correction import benjamini_hochberg as benjamini_hochberg, holm as holm
    from recombine.stats.forecasts import last_value as last_value, log_linear as log_linear
    from recombine.stats.generated_images import (
        combination_table as combination_table,
        decodability_relation as decodability_relation,
        exchanged_colours as exchanged_colours,
        factor_relation as factor_relation,
        factor_table as factor_table,
        joint_success as joint_success,
        loss_of_unmet_pairs as loss_of_unmet_pairs,
        near_minus_far as near_minus_far,
        rank_over_models_and_concepts as rank_over_models_and_concepts,
        rank_over_runs as rank_over_runs,
        success_rates as success_rates,
    )
    from recombine.stats.intervals import (
        LEVEL as LEVEL,
        Interval as Interval,
        bootstrap_interval as bootstrap_interval,
        mean_and_error as mean_and_error,
        t_bounds as t_bounds,
        t_interval as t_interval,
    )
    from recombine.stats.jackknife import jackknife as jackknife
    from recombine.stats.logistic import (
        Logistic as Logistic,
        fit_logistic as fit_logistic,
        logistic_weights as logistic_weights,
    )
    from recombine.stats.logistic_mixed import MixedLogistic as MixedLogistic, fit_logistic_mixed as fit_logistic_mixed
    from recombine.stats.mixed import WithinSlope as WithinSlope, within_slope as within_slope
    from recombine.stats.power import needed_replicates as needed_replicates, needed_to_decide as needed_to_decide
    from recombine.stats.prediction import (
        CalibrationBin as CalibrationBin,
        Race as Race,
        brier as brier,
        calibration_error as calibration_error,
        calibration_table as calibration_table,
        log_loss as log_loss,
        race as race,
        wilson as wilson,
    )
    from recombine.stats.rank import partial_rank as partial_rank, ranks_within as ranks_within
    from recombine.stats.replicate_race import ReplicateRace as ReplicateRace, race_by_replicate as race_by_replicate
    from recombine.stats.rule import Direction as Direction, Outcome as Outcome, decide as decide
    from recombine.stats.scaling_law import (
        Forecast as Forecast,
        Law as Law,
        Needed as Needed,
        fit_law as fit_law,
        forecast as forecast,
        needed as needed,
    )
    from recombine.stats.shares import clustered_share as clustered_share
    from recombine.stats.threshold import (
        Censored as Censored,
        CensoredSlope as CensoredSlope,
        Reached as Reached,
        censored_slope as censored_slope,
        power_law as power_law,
        reached as reached,
    )
    from recombine.stats.verdicts import (
        ALPHA as ALPHA,
        Claim as Claim,
        Role as Role,
        Verdict as Verdict,
        judge as judge,
        settle as settle,
    )

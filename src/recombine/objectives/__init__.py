"""Objectives: the loss, the training step and the evaluation that fit a family's kind of targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.objectives.base import Objective as Objective
    from recombine.objectives.binary import Binary as Binary
    from recombine.objectives.classification import Classification as Classification
    from recombine.objectives.constraint_reward import ConstraintReward as ConstraintReward
    from recombine.objectives.deep_supervision import DeepSupervision as DeepSupervision
    from recombine.objectives.flow_matching import FlowMatching as FlowMatching
    from recombine.objectives.latent_posterior import LatentPosterior as LatentPosterior
    from recombine.objectives.next_token import NextToken as NextToken
    from recombine.objectives.policy_gradient import PolicyGradient as PolicyGradient
    from recombine.objectives.regression import Regression as Regression

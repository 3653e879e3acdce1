"""Measurements of trained networks: computed after training, so that a new one never retrains.

Each measurement is a component. `measure(setting, network)` returns a `Measured`: a few summary numbers and a table.
`Scores` and `Decodability` suit most runs; `Swap` and `Erasure` intervene on activations. Others belong to one family
of tasks (SCAN, computation graphs, ciphers, images, constrained problems).

    from recombine.probes import Decodability, Scores
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.probes.base import Measured as Measured, Measurement as Measurement
    from recombine.probes.categories import Categories as Categories
    from recombine.probes.certificate import CertificateOfSupport as CertificateOfSupport
    from recombine.probes.cipher_answers import CipherAnswers as CipherAnswers
    from recombine.probes.concepts import Concepts as Concepts
    from recombine.probes.conjunctions import Conjunctions as Conjunctions
    from recombine.probes.constraint_rates import ConstraintRates as ConstraintRates
    from recombine.probes.cutoffs import Cutoffs as Cutoffs
    from recombine.probes.decodability import Decodability as Decodability
    from recombine.probes.erasure import Erasure as Erasure
    from recombine.probes.from_encoding import FromEncoding as FromEncoding
    from recombine.probes.gallery import Gallery as Gallery
    from recombine.probes.graph_steps import GraphSteps as GraphSteps
    from recombine.probes.knockout import Knockout as Knockout
    from recombine.probes.pairs_certificate import PairsCertificate as PairsCertificate
    from recombine.probes.readout import Readout as Readout
    from recombine.probes.refit import Refit as Refit
    from recombine.probes.representation import Representation as Representation
    from recombine.probes.ridge import RidgePath as RidgePath, mean_r2 as mean_r2
    from recombine.probes.routes.call_answers import CallAnswers as CallAnswers
    from recombine.probes.routes.compute import Compute as Compute
    from recombine.probes.routes.expert_scores import ExpertScores as ExpertScores
    from recombine.probes.routes.mixing import Mixing as Mixing
    from recombine.probes.routes.outer_steps import OuterSteps as OuterSteps
    from recombine.probes.routes.text_bound import TextBound as TextBound
    from recombine.probes.routes.text_latents import TextLatents as TextLatents
    from recombine.probes.routes.wrong_identifier import WrongIdentifier as WrongIdentifier
    from recombine.probes.scan_certificate import ScanCertificateMeasurement as ScanCertificateMeasurement
    from recombine.probes.scan_commands import ScanCommands as ScanCommands
    from recombine.probes.scores import Scores as Scores
    from recombine.probes.segregation import Segregation as Segregation
    from recombine.probes.subnetwork import Subnetwork as Subnetwork
    from recombine.probes.sup_error import SupError as SupError
    from recombine.probes.swap import Swap as Swap

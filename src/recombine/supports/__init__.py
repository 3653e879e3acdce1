"""Supports: which combinations a model trains on, and which it is tested on.

Each class below that is a `SupportKind` is a configuration, for example `Random(number=40)`. Its method
`draw(space, seed)` gives a `Support`. `support.certificate()` says what can be known about the support before any
training, and `Regions` names the combinations to evaluate on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.supports.balanced import Balanced as Balanced
    from recombine.supports.base import Sampler as Sampler, Support as Support, SupportKind as SupportKind
    from recombine.supports.by_size import BySize as BySize
    from recombine.supports.certificate import Certificate as Certificate, Coverage as Coverage
    from recombine.supports.cipher_stream import CipherStream as CipherStream
    from recombine.supports.compound_divergence import CompoundDivergence as CompoundDivergence
    from recombine.supports.corner import Corner as Corner
    from recombine.supports.coverage_graph import CoverageGraph as CoverageGraph
    from recombine.supports.covering import Covering as Covering, cover as cover
    from recombine.supports.disconnected import Disconnected as Disconnected
    from recombine.supports.episodes import Episodes as Episodes
    from recombine.supports.few_objects import FewObjects as FewObjects
    from recombine.supports.gaps import Gaps as Gaps
    from recombine.supports.given import Given as Given
    from recombine.supports.hops import Hops as Hops
    from recombine.supports.leading_instances import LeadingInstances as LeadingInstances
    from recombine.supports.listed import Listed as Listed
    from recombine.supports.missing_block import MissingBlock as MissingBlock
    from recombine.supports.missing_part import MissingPart as MissingPart
    from recombine.supports.optimal import Optimal as Optimal
    from recombine.supports.planned import Planned as Planned
    from recombine.supports.popular import Popular as Popular
    from recombine.supports.random import Random as Random
    from recombine.supports.regions import Regions as Regions
    from recombine.supports.scan_split import ScanSplit as ScanSplit
    from recombine.supports.short_lists import ShortLists as ShortLists
    from recombine.supports.small_factors import SmallFactors as SmallFactors
    from recombine.supports.table_split import TableSplit as TableSplit
    from recombine.supports.unpopular import Unpopular as Unpopular
    from recombine.supports.varied import Varied as Varied

"""Audits: does a model recombine or memorise, which combinations fail and why, and what to collect next?

`audit_table` audits a table of scores, `audit_model` a model that can be called, `audit_coverage_graph` a table of
facts without any model, and `embers_findings` the answers of a language model. Each returns a result that prints
itself. The sub-packages hold the steps: `reading` (tables into combinations), `asking` (questions to a model),
`crossed` (mixed models of scores), `decodability` (probes of activations), `coverage_graph` and `embers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach, make_callable

__getattr__, __dir__, __all__ = attach(__name__, __file__)

# `rc.audit(frame, ...)` is the verb; its result writes pages, so it belongs to a room that this one may not import.
make_callable(__name__, "recombine.report.audit.result:audit_frame")

if TYPE_CHECKING:
    from recombine.audit.asking.ask import (
        ModelAnswers as ModelAnswers,
        ask_model as ask_model,
        audit_model as audit_model,
    )
    from recombine.audit.audit import audit_cells as audit_cells, audit_table as audit_table
    from recombine.audit.cells import Cells as Cells, Factor as Factor
    from recombine.audit.comparison.compare import compare_tables as compare_tables
    from recombine.audit.comparison.findings import Comparison as Comparison
    from recombine.audit.comparison.gate import check_gate as check_gate
    from recombine.audit.coverage_graph.audit import (
        audit_coverage_graph as audit_coverage_graph,
        coverage_graph_tables as coverage_graph_tables,
    )
    from recombine.audit.coverage_graph.findings import CoverageGraphFinding as CoverageGraphFinding
    from recombine.audit.embers.findings import Embers as Embers, embers_findings as embers_findings
    from recombine.audit.findings import Audit as Audit
    from recombine.audit.logs.log import Log as Log
    from recombine.audit.reading.read import read_cells as read_cells
    from recombine.audit.tables import audit_tables as audit_tables

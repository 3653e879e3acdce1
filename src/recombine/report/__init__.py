"""Pages: one self-contained HTML file for a study, an audit of a table, of images, or of a language model.

`write_report` writes any `Report` (a question, verdicts, figures, tables). `write_audit`, `write_images`, `write_embers` and `write_tools` write the pages of the commands. The pages load nothing from a network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.report.audit.page import render_audit as render_audit, write_audit as write_audit
    from recombine.report.comparison import write_comparison as write_comparison
    from recombine.report.embers import write_embers as write_embers
    from recombine.report.html import (
        Report as Report,
        Table as Table,
        render_report as render_report,
        write_report as write_report,
    )
    from recombine.report.images import write_images as write_images
    from recombine.report.junit import write_junit as write_junit
    from recombine.report.tools import write_tools as write_tools

"""The viewer: pages in a browser that show evidence, runs and comparisons, and audit, plan and start.

`evidence` makes the document that the Evidence page shows, from a store or from a folder of exported results. A static
site can show the same page from a file. `make_app` is the server, on this machine only; `recombine view` starts it.
`rc.view(result)` shows one thing: in the cell of a notebook, or as a page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach, make_callable

__getattr__, __dir__, __all__ = attach(__name__, __file__)

# `rc.view(result)` is the verb.
make_callable(__name__, "recombine.view.show:view")

if TYPE_CHECKING:
    from recombine.view.evidence_document import evidence as evidence, write_evidence_page as write_evidence_page
    from recombine.view.serve import serve as serve
    from recombine.view.server import make_app as make_app
    from recombine.view.show import View as View

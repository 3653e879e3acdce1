"""The command that opens the viewer."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from recombine.cli.options import DEFAULT_STORE, StoreOption
from recombine.cli.output import say, say_line


def view(
    *,
    store_path: StoreOption = DEFAULT_STORE,
    port: Annotated[int, Parameter(validator=validators.Number(gte=0, lte=65535))] = 8765,
    evidence: list[Path] | None = None,
    browser: Annotated[bool, Parameter(name="--browser")] = False,
) -> None:
    """Open the viewer: evidence, runs, comparisons, audits and plans in a browser, on this machine only.

    Args:
        port: The port; 0 takes a free one.
        evidence: A folder of exported results, shown beside those of the store; by default docs/results if it is here.
        browser: Also open the link in a browser.
    """
    from recombine.view.serve import serve

    def ready(link: str) -> None:
        say_line(f"viewer of {store_path}: {link}")
        say("Ctrl-C ends it. The link carries a token: do not share it.")
        if browser:
            webbrowser.open(link)

    try:
        serve(store_path, port=port, evidence=evidence or (), ready=ready)
    except KeyboardInterrupt:
        say("The viewer has ended.")  # An interrupt is how it ends.

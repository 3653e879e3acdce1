"""Starting the server on this machine's own address, and ending it."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from recombine.errors import BadInput, StoreError
from recombine.store.store import is_store

HOST = "127.0.0.1"
RESULTS = Path("docs/results")
"""Shown by default where it is there: the results that come with the source."""
SECONDS_TO_END = 3
"""How long open requests may take when the viewer ends."""


def serve(
    store: Path, *, port: int = 8765, evidence: Sequence[Path] = (), ready: Callable[[str], None] = lambda _: None
) -> None:
    """Serve the viewer on loopback until it is interrupted.

    Args:
        store: The folder of the store. It need not exist yet: the page Start can create it.
        port: The port; 0 takes a free one.
        evidence: Folders of exported results; by default `docs/results` if it is here.
        ready: Called with the link once the server listens.
    """
    import uvicorn

    from recombine.view.server import make_app

    _check(store)
    folders = tuple(evidence) or ((RESULTS,) if any(RESULTS.glob("*/verdicts.json")) else ())
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"There is no folder {folder}.", fix="give a folder of exported results with --evidence")
    listener = listen(port)
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(24)
    app = make_app(store, folders, token, port)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=SECONDS_TO_END
    )
    server = uvicorn.Server(config)
    ready(f"http://{HOST}:{port}/?token={token}")
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()


def listen(port: int) -> socket.socket:
    """A socket on loopback only; BadInput if the port is in use."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # A viewer that has just ended leaves connections in TIME_WAIT; this does not share the port with a live one.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(512)
    except OverflowError:
        raise BadInput(f"--port is {port}; expected a number up to 65535.", fix="--port 0 takes a free one") from None
    except OSError as error:
        what = f"The port {port} cannot be used: {error.strerror}."
        raise BadInput(what, fix="another viewer may be open; --port 0 takes a free port") from error
    return listener


def _check(store: Path) -> None:
    if store.exists() and not store.is_dir():
        raise StoreError(f"The store {store} is a file, not a folder.", fix="choose a folder with --store")
    if store.is_dir() and not is_store(store) and any(store.iterdir()):
        fix = "choose the folder of a store with --store, or one that does not exist yet"
        raise StoreError(f"{store} is a folder, but no store.", fix=fix)

"""Who may talk to the viewer: requests that came by this machine's name, from its own pages, with its token."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NAMES = ("127.0.0.1", "localhost", "[::1]")
"""The names under which a loopback server is reached. Any other Host header comes from DNS rebinding."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy of the viewer's pages: its own files and nothing else; no inline scripts, no evaluation."""

FRAMED = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""The policy of an audit's page inside a frame: no origin, no network. The page's own policy also names its scripts."""

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}

LARGEST_BODY = 1_000_000
"""Bytes of a request that is not an upload."""
LARGEST_UPLOAD = 100_000_000
"""Bytes of an uploaded table."""
UPLOADS = "/api/tables"

ASK = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>recombine: link needed</title>
<body><h1>This viewer needs its link</h1><p>Open the link that <code>recombine view</code> printed in the terminal. It carries
a token, so that other users of this machine and other web pages cannot read or start anything.</p></body></html>"""


class Guard:
    """Checks each request before anything else sees it, and puts the security headers on each answer.

    A browser gets the token as a cookie from the link (`/?token=...`). A script sends `Authorization: Bearer TOKEN`.
    """

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        """Guard an application.

        Args:
            app: The application.
            token: The token that every request needs.
            port: The port that the server listens on; 0 accepts any port in the Host header.
        """
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in NAMES} | ({*NAMES} if port in (0, 80) else set())
        self.cookie = f"recombine-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers) or self._entrance(scope) or self._without_token(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, _with_headers(send))
            return
        limit = LARGEST_UPLOAD if scope["path"] == UPLOADS else LARGEST_BODY
        if _too_large(headers, limit):
            too_large = _error(413, f"The request is larger than {limit:,} bytes.", "send a smaller file")
            await too_large(scope, receive, _with_headers(send))
            return
        await self.app(scope, _counted(receive, limit), _with_headers(send))

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        """Refuse other hosts (DNS rebinding) and other pages (cross-site requests)."""
        host = headers.get("host", "")
        if host not in self.hosts:
            return _error(421, f"This server does not answer for the host {host[:100]!r}.", "open the printed link")
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return _error(403, "Requests from other pages are refused.", "open the printed link")
        if headers.get("sec-fetch-site", "none") == "cross-site" and scope["path"] != "/":
            return _error(403, "Requests from other pages are refused.", "open the printed link")
        changes = scope["method"] not in ("GET", "HEAD")
        if changes and origin is None and not headers.get("authorization"):
            return _error(403, "A request that changes something needs an Origin or an Authorization header.", None)
        return None

    def _entrance(self, scope: Scope) -> Response | None:
        """The link: the token becomes a cookie, and leaves the address."""
        asked = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["path"] != "/" or "token" not in asked:
            return None
        if not secrets.compare_digest(asked.pop("token")[0].encode(), self.token.encode()):
            return None
        answer = RedirectResponse("/" + (f"?{urlencode(asked, doseq=True)}" if asked else ""), status_code=303)
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
        return answer

    def _without_token(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        given = (bearer, _cookie(headers.get("cookie", ""), self.cookie))
        if any(secrets.compare_digest(each.encode(), self.token.encode()) for each in given if each):
            return None
        if scope["path"] == "/":
            return HTMLResponse(ASK, status_code=401)
        return _error(401, "The token is missing or wrong.", "open the link that `recombine view` printed")


def _cookie(text: str, name: str) -> str:
    jar = SimpleCookie()
    try:
        jar.load(text)
    except CookieError:
        return ""
    return jar[name].value if name in jar else ""


def _too_large(headers: Mapping[str, str], limit: int) -> bool:
    length = headers.get("content-length", "0")
    return not length.isdecimal() or int(length) > limit


class TooLarge(Exception):
    """A body without a length that is larger than allowed."""


def _counted(receive: Receive, limit: int) -> Receive:
    """The same messages, as long as the body is no larger than the limit."""
    total = 0

    async def counted() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > limit:
            raise TooLarge
        return message

    return counted


def _with_headers(send: Send) -> Send:
    """Send, with the security headers on the answer."""

    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            added = HEADERS | {"content-security-policy": POLICY, "cache-control": "no-store"}
            message["headers"] = [
                *message["headers"],
                *((name.encode(), text.encode()) for name, text in added.items() if name.encode() not in present),
            ]
        await send(message)

    return with_headers


def _error(status: int, what: str, fix: str | None) -> JSONResponse:
    return JSONResponse({"error": what, "fix": fix}, status_code=status)

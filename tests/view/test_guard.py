"""Who may talk to the viewer, and what its answers allow a browser to do."""

from __future__ import annotations

import re

import pytest

from recombine.view import guard

from .conftest import TOKEN


def test_a_script_with_the_token_is_answered(client):
    status, headers, _ = client.ask("GET", "/api/state")
    assert status == 200
    assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("given", [None, "Bearer wrong", f"Basic {TOKEN}x", "Bearer ", "Bearer \u00e9"])
def test_without_the_token_nothing_is_told(client, given):
    for path in ("/api/state", "/static/app.js", "/results/0/data-scaling/score_by_size.png", "/api/nothing"):
        status, _, body = client.ask("GET", path, Authorization=given)
        assert status == 401 and b"runs" not in body.replace(b"recombine view", b"")


def test_the_link_becomes_a_cookie_that_scripts_and_other_sites_do_not_see(client):
    status, headers, _ = client.ask("GET", f"/?token={TOKEN}", Authorization=None)
    assert status == 303 and headers["location"] == "/", "the token leaves the address"
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower()
    status, headers, body = client.ask("GET", "/", Authorization=None, Cookie=cookie.partition(";")[0])
    assert status == 200 and b"recombine" in body
    assert client.ask("GET", "/?token=wrong", Authorization=None)[0] == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil:{port}"]
)
def test_another_host_is_refused_even_with_the_token(client, host):
    """DNS rebinding: the name of the attacker's page leads here, and the browser would send along what it has."""
    status, _, body = client.ask("GET", "/api/state", Host=host.format(port=client.port))
    assert status in (400, 421) and b"store" not in body


@pytest.mark.parametrize("host", ["localhost:{port}", "[::1]:{port}"])
def test_other_names_of_this_machine_are_accepted(client, host):
    assert client.ask("GET", "/api/state", Host=host.format(port=client.port))[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"])
def test_another_page_cannot_start_or_read_anything(client, origin):
    before = client.get("jobs")
    body = b'{"what": "study", "study": "data-scaling", "profile": "smoke"}'
    cookie = f"recombine-{client.port}={TOKEN}"
    headers = {"Origin": origin.format(port=client.port), "Authorization": None, "Cookie": cookie}
    assert client.ask("POST", "/api/jobs", body, **headers)[0] == 403
    assert client.ask("GET", "/api/state", **headers)[0] == 403
    assert client.get("jobs") == before


def test_a_form_of_another_site_has_no_origin_and_is_refused(client):
    cookie = f"recombine-{client.port}={TOKEN}"
    assert client.ask("POST", "/api/jobs", b"{}", Authorization=None, Cookie=cookie)[0] == 403
    headers = {"Sec-Fetch-Site": "cross-site", "Authorization": None, "Cookie": cookie}
    assert client.ask("GET", "/api/state", **headers)[0] == 403


def test_the_pages_allow_no_inline_script_no_evaluation_and_no_other_host(client):
    _, headers, body = client.ask("GET", "/")
    policy = headers["content-security-policy"]
    assert policy == guard.POLICY
    assert "unsafe" not in policy and "http" not in policy and "frame-ancestors 'none'" in policy
    text = body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|https?://", text)


def test_no_script_or_style_of_the_viewer_names_another_host():
    from importlib import resources

    static = resources.files("recombine.view") / "static"
    for folder in (static, static / "pages"):
        for file in folder.iterdir():
            if file.name.endswith((".js", ".css", ".html")):
                addresses = re.findall(r"https?://[\w.-]+", file.read_text(encoding="utf-8"))
                assert set(addresses) <= {"http://www.w3.org"}, file.name  # The name of SVG is no address.


@pytest.mark.parametrize(
    "path",
    [
        "/results/0/../../../pyproject.toml",
        "/results/0/..%2f..%2fpyproject.toml",
        "/results/0/data-scaling/verdicts.json",
        "/results/9/x.png",
        "/results/0/%2Fetc%2Fpasswd",
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/audits/..%2f..%2fetc%2fpasswd",
        "/api/runs/..%2f..%2frecombine.json",
        "/api/runs/%2e%2e",
    ],
)
def test_no_path_leads_out(client, path):
    status, _, body = client.ask("GET", path)
    assert status in (400, 404), body
    assert b"[project]" not in body and b"root:" not in body and b"def " not in body


def test_a_body_that_is_too_large_is_not_read(client, monkeypatch):
    monkeypatch.setattr(guard, "LARGEST_BODY", 1000)
    monkeypatch.setattr(guard, "LARGEST_UPLOAD", 5000)
    assert client.ask("POST", "/api/plan", b"x" * 1001)[0] == 413
    assert client.ask("POST", "/api/tables?name=x.csv", b"x" * 5001)[0] == 413
    # A length that lies, and none at all.
    assert client.ask("POST", "/api/plan", b"{}", **{"Content-Length": "-1"})[0] in (400, 413)
    chunks = b"800\r\n" + b"x" * 0x800 + b"\r\n0\r\n\r\n"
    headers = {"Transfer-Encoding": "chunked", "Content-Length": None}
    assert client.ask("POST", "/api/plan", chunks, **headers)[0] in (400, 413)

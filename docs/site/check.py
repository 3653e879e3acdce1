"""Checks a built site: every link inside it leads somewhere, and nothing is loaded from other hosts."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
}
"""What a browser fetches by itself, and the attribute that names it. Links of the head are looked at separately."""

FETCHED_RELATIONS = {
    "stylesheet",
    "icon",
    "preload",
    "prefetch",
    "preconnect",
    "modulepreload",
    "manifest",
    "dns-prefetch",
}


class Page(HTMLParser):
    """The links, the anchors and the loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.loaded: list[str] = []
        self._style = False
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self._style = tag == "style"
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and FETCHED_RELATIONS & set(given.get("rel", "").split()):
            self.loaded.append(given["href"])
        if tag in LOADS and LOADS[tag] in given:
            self.loaded.append(given[LOADS[tag]])
        self.loaded += _addresses(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self._style:
            self.loaded += _addresses(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "style":
            self._style = False


def _addresses(style: str) -> list[str]:
    """What a style sheet loads."""
    return re.findall(r"url\(\s*['\"]?([^'\")]+)", style) + re.findall(r"@import\s+['\"]([^'\"]+)", style)


def problems(site: Path) -> list[str]:
    """Broken links, missing files, and whatever would be loaded from other hosts.

    Args:
        site: The folder of a built site.

    Returns:
        One line for each, with the page that has it.
    """
    read = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    wrong = []
    for path, page in read.items():
        where = path.relative_to(site.resolve())
        # The page for addresses that do not exist is only shown by servers, at any address.
        if where.name == "404.html":
            continue
        for target in page.links:
            wrong += [f"{where}: {fault}" for fault in _broken(target, path, read)]
        for target in page.loaded:
            if target.startswith("data:"):
                continue
            if urlsplit(target).netloc:
                wrong.append(f"{where} loads {target} from another host")
            else:
                wrong += [f"{where}: {fault}" for fault in _broken(target, path, read)]
    for sheet in site.rglob("*.css"):
        for target in _addresses(sheet.read_text("utf-8")):
            if urlsplit(target).netloc:
                wrong.append(f"{sheet.relative_to(site)} loads {target} from another host")
    return sorted(set(wrong))


def _broken(target: str, page: Path, read: dict[Path, Page]) -> list[str]:
    address = urlsplit(target)
    if address.scheme or address.netloc:
        return [] if address.scheme in ("https", "mailto") else [f"{target} is not a link of the site"]
    path = (page.parent / unquote(address.path)).resolve() if address.path else page
    if path.is_dir():
        return [f"{target} is a folder, which a browser lists when the site is opened from disk"]
    if not path.exists():
        return [f"{target} does not exist"]
    if address.fragment.startswith("/"):
        # An address inside the evidence page: its script shows the study of that name.
        study = json.dumps(unquote(address.fragment).split("/")[1])
        data = path.with_name("evidence-data.js")
        return [] if data.exists() and study in data.read_text("utf-8") else [f"{target} is no study of that page"]
    if path in read and unquote(address.fragment) not in read[path].anchors:
        return [f"{target} has no such anchor"]
    return []

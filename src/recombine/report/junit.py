"""The checks of a gate as a JUnit file, which continuous integration shows as tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from recombine.figures.files import write_whole
from recombine.plain import plain

if TYPE_CHECKING:
    from recombine.audit.comparison.gate import Check


def write_junit(checks: Sequence[Check], path: str | Path, *, suite: str = "recombine audit") -> Path:
    """Write one test case per check.

    Args:
        checks: The judged conditions.
        path: The file to write.
        suite: The name of the test suite.

    Returns:
        The path of the file.
    """
    failures = str(sum(not check.passed for check in checks))
    counts = {"tests": str(len(checks)), "failures": failures, "errors": "0", "skipped": "0"}
    root = ElementTree.Element("testsuites", counts)
    cases = ElementTree.SubElement(root, "testsuite", {"name": plain(suite), **counts})
    for check in checks:
        # Invisible characters are written out: XML cannot hold most of them.
        case = ElementTree.SubElement(cases, "testcase", {"classname": plain(suite), "name": plain(check.name)})
        if not check.passed:
            failure = ElementTree.SubElement(case, "failure", {"message": plain(check.sentence)})
            failure.text = plain(check.sentence)
    ElementTree.indent(root)
    return write_whole(path, ElementTree.tostring(root, encoding="unicode", xml_declaration=True))

"""The user's filter: one expression over the columns of a row, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import duckdb

from recombine.audit.reading_errors import bad_filter, forbidden_filter

REFUSED = {"SUBQUERY", "STAR", "WINDOW", "PARAMETER"}
"""Kinds of expressions that reach beyond a row: queries, all columns at once, other rows, what nobody gave."""


def check_filter(where: str) -> None:
    """Refuses all that is not a single expression. Only parsed, never run; it knows no table and no file."""
    with duckdb.connect(config={"enable_external_access": "false", "threads": "1"}) as connection:
        try:
            (row,) = connection.execute("SELECT json_serialize_sql(?)", [f"SELECT\n{where}\n"]).fetchall()
        except duckdb.Error as error:
            raise bad_filter(where, error, ()) from None
    said = json.loads(row[0])
    if said.get("error"):
        raise bad_filter(where, ValueError(str(said.get("error_message", "not SQL"))), ())
    if len(said["statements"]) != 1 or not _bare(said["statements"][0]["node"]):
        raise forbidden_filter(where)


def _bare(node: dict[str, Any]) -> bool:
    """Whether a query is SELECT, one expression, and no more."""
    return (
        node["type"] == "SELECT_NODE"
        and len(node["select_list"]) == 1
        and not node["select_list"][0].get("alias")
        and node["from_table"]["type"] == "EMPTY"
        and node.get("where_clause") is None
        and not node["modifiers"]
        and not node["cte_map"]["map"]
        and not node.get("group_expressions")
        and node.get("having") is None
        and node.get("qualify") is None
        and node.get("sample") is None
        and not _reaches(node["select_list"])
    )


def _reaches(tree: Any) -> bool:
    """Whether an expression contains one of the refused kinds anywhere."""
    if isinstance(tree, dict):
        return tree.get("class") in REFUSED or any(_reaches(part) for part in tree.values())
    return isinstance(tree, list) and any(_reaches(part) for part in tree)

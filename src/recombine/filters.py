"""Filters: one SQL expression over the columns of a row, checked before it is run.

`--where` of every command is such an expression. It can reach no file, no other row and no second statement, and it calls
no function that takes any time or memory.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from recombine.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    import duckdb

SHOWN = 200
"""How many characters of the database's message are shown."""
QUOTE = "quote text with single quotes, or use TRY_CAST(column AS DOUBLE) if a column is not all numbers"


def first_line(error: Exception) -> str:
    """The first line of a message, without the database's prefix."""
    line = str(error).strip().split("\n")[0]
    return re.sub(r"^[A-Z][\w ]*Error: ", "", line)[:SHOWN]


SLOW = {
    *("pg_sleep", "sleep_ms", "repeat", "range", "generate_series", "lpad", "rpad"),
    *("list_resize", "array_resize", "bar", "printf", "format"),
}
"""Functions that wait, or that make a value of any size from a short text."""

REFUSED = {"SUBQUERY", "STAR", "WINDOW", "PARAMETER"}
"""Kinds of expressions that reach beyond a row: queries, all columns at once, other rows, parameters."""


PARSER: dict[str, Any] = {"enable_external_access": "false", "threads": "1"}
"""A database that only parses."""

Parsed = dict[str, Any]
"""A parsed query, as DuckDB writes it in JSON."""


def check_filter(where: str, connection: duckdb.DuckDBPyConnection | None = None) -> Parsed:
    """Raise an error unless the filter is a single expression. It is parsed here but never run.

    Args:
        where: The filter, for example "width >= 128 AND family = 'scan'".
        connection: A database to parse it with; by default a new one.

    Returns:
        The parsed expression, as the one column of a query.
    """
    import duckdb

    with contextlib.nullcontext(connection) if connection else duckdb.connect(config=PARSER) as parser:
        try:
            (row,) = parser.execute("SELECT json_serialize_sql(?)", [f"SELECT\n{where}\n"]).fetchall()
        except duckdb.Error as error:
            raise bad_filter(where, error, ()) from None
    parsed = json.loads(row[0])
    if parsed.get("error"):
        raise bad_filter(where, ValueError(str(parsed.get("error_message", "not SQL"))), ())
    if slow := sorted(_functions(parsed["statements"]) & SLOW):
        fix = "compare columns with values: \"kind = 'colors' AND seed < 3\""
        raise BadInput(f"The filter {where[:200]!r} calls {slow[0]}, which may take any time or memory.", fix=fix)
    if len(parsed["statements"]) != 1 or not _bare(parsed["statements"][0]["node"]):
        raise forbidden_filter(where)
    return parsed


def renamed(parsed: Parsed, name: Callable[[str], str], connection: duckdb.DuckDBPyConnection) -> str:
    """Write a checked filter again as SQL, with other names for its columns.

    Args:
        parsed: What `check_filter` returned.
        name: Gives the new name of a column, which may have dots.
        connection: A database to write it with.

    Returns:
        The expression in SQL.
    """
    _rename(parsed["statements"], name)
    ((query,),) = connection.execute("SELECT json_deserialize_sql(?)", [json.dumps(parsed)]).fetchall()
    return str(query).removeprefix("SELECT ")


def _rename(node: Any, name: Callable[[str], str]) -> None:
    if isinstance(node, dict):
        if node.get("class") == "COLUMN_REF":
            node["column_names"] = [name(".".join(node["column_names"]))]
        for inner in node.values():
            _rename(inner, name)
    elif isinstance(node, list):
        for inner in node:
            _rename(inner, name)


def _functions(node: Any) -> set[str]:
    """The names of all functions in a parsed statement."""
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    own = {str(node["function_name"]).lower()} if isinstance(node, dict) and "function_name" in node else set[str]()
    return own.union(*map(_functions, inner))


def _bare(node: dict[str, Any]) -> bool:
    """Whether a query is SELECT with one expression and nothing else."""
    clauses = ("where_clause", "having", "qualify", "sample")
    if any(node.get(clause) is not None for clause in clauses) or node.get("group_expressions"):
        return False
    if node["type"] != "SELECT_NODE" or node["modifiers"] or node["cte_map"]["map"]:
        return False
    chosen = node["select_list"]
    alone = len(chosen) == 1 and not chosen[0].get("alias") and node["from_table"]["type"] == "EMPTY"
    return alone and not _reaches(chosen)


def _reaches(tree: Any) -> bool:
    """Whether an expression contains a refused kind."""
    if isinstance(tree, dict):
        return tree.get("class") in REFUSED or any(_reaches(part) for part in tree.values())
    return isinstance(tree, list) and any(_reaches(part) for part in tree)


def bad_filter(where: str, error: Exception, names: Sequence[str]) -> BadInput:
    """The error about a filter that does not fit the table."""
    import duckdb

    if isinstance(error, duckdb.PermissionException):
        return forbidden_filter(where)
    missing = re.search(r'Referenced column "(.*?)" not found', str(error))
    fix = None if missing is None else did_you_mean(missing[1], names)
    fix = QUOTE if "Cannot compare values of type VARCHAR" in str(error) else fix
    return BadInput(f"The filter {where!r} cannot be used: {first_line(error)}", fix=fix)


def forbidden_filter(where: str) -> BadInput:
    """The error about a filter that is more than an expression over one row."""
    return BadInput(
        f"The filter {where!r} is not one expression over the columns of a row.",
        fix="write it like \"kind = 'colors' AND seed < 3\": no queries, no files, no second statement",
    )

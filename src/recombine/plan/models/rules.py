"""Constraints of PICT, ACTS and CTWedge, written in the planner's own language."""

from __future__ import annotations

import fnmatch
import itertools
import operator
from collections.abc import Callable, Sequence

from recombine.errors import did_you_mean
from recombine.plan.models.source import Parameter, Source, Token

COMPARISONS: dict[str, Callable[[object, object], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}  # pyright: ignore[reportAssignmentType]
EQUAL = ("=", "==", "<>", "!=")
AND, OR, NOT, IMPLIES, SAME = ("and", "&&"), ("or", "||"), ("not", "!"), ("=>", "->", "implies"), ("<=>",)
FUNCTIONS = ("isnegative", "ispositive")
DEEPEST = 60
MOST_PAIRS = 4000
"""The most pairs of values in a comparison of two parameters."""


def quoted(text: str) -> str:
    """A name in the planner's language."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def has(one: Parameter, values: Sequence[str]) -> str:
    """The statement that a parameter has one of these values; never true for none."""
    every = ", ".join(map(quoted, values or one.values))
    statement = f"{quoted(one.name)} in {{{every}}}"
    return statement if values else f"not {statement}"


class Rules:
    """A parser of constraints: implications, or, and, not, comparisons, IN and LIKE."""

    def __init__(self, source: Source, parameters: Sequence[Parameter], tokens: Sequence[Token]) -> None:
        self.source, self.tokens = source, tokens
        self.parameters = {one.name.lower(): one for one in parameters}
        self.position = self.depth = 0

    @property
    def here(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    def take(self, *words: str) -> bool:
        """Go past the next token if it is one of these signs or words."""
        if self.here.kind not in ("sign", "word") or self.here.text.lower() not in words:
            return False
        self.position += 1
        return True

    def expect(self, word: str, after: str) -> None:
        """Go past a sign or word that must come."""
        if not self.take(word):
            self.fail(f"expected {word.upper()!r} {after}, got {self.named()}")

    def named(self) -> str:
        """The next token, for an error."""
        return "the end" if self.here.kind == "end" else repr(self.here.text)

    def fail(self, what: str, fix: str | None = None, token: Token | None = None) -> None:
        """An error at a token."""
        self.source.fail((token or self.here).at, what, fix)

    def constraint(self) -> str:
        """One constraint: IF ... THEN ... ELSE ..., or an expression."""
        if not self.take("if"):
            return self.expression()
        condition = self.expression()
        self.expect("then", "after the condition of an IF")
        then = self.expression()
        rule = f"if {condition} then {then}"
        return f"({rule}) and (if not ({condition}) then {self.expression()})" if self.take("else") else rule

    def expression(self) -> str:
        """An expression in the planner's language, always in parentheses."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail("the nesting is too deep", "write several constraints")
        left = self.joined(OR, "or", lambda: self.joined(AND, "and", self.operand))
        if self.take(*IMPLIES):
            left = f"(if {left} then {self.expression()})"
        elif self.take(*SAME):
            right = self.expression()
            left = f"(({left} and {right}) or not ({left} or {right}))"
        self.depth -= 1
        return left

    def joined(self, signs: Sequence[str], word: str, part: Callable[[], str]) -> str:
        """Parts with one sign between them."""
        parts = [part()]
        while self.take(*signs):
            parts.append(part())
        return parts[0] if len(parts) == 1 else f"({f' {word} '.join(parts)})"

    def operand(self) -> str:
        """A negation, a parenthesis or a statement about a parameter."""
        if self.take(*NOT):
            self.depth += 1
            if self.depth > DEEPEST:
                self.fail("the nesting is too deep", "write several constraints")
            inner = f"not ({self.operand()})"
            self.depth -= 1
            return inner
        if self.take("("):
            inner = self.expression()
            self.expect(")", "at the end of the parenthesis")
            return f"({inner})"
        if self.here.text.lower() in FUNCTIONS and self.here.kind == "word":
            return self.function()
        return self.statement()

    def function(self) -> str:
        """IsNegative([A]) and IsPositive([A])."""
        negative = self.here.text.lower() == "isnegative"
        self.position += 1
        self.expect("(", "after the function")
        one = self.parameter()
        self.expect(")", "after the parameter")
        return has(one, [value for value in one.values if (value in one.negative) == negative])

    def parameter(self) -> Parameter:
        """A parameter that is named here."""
        token = self.here
        if token.kind not in ("name", "word"):
            self.fail(f"expected a parameter, got {self.named()}")
        if token.text.lower() not in self.parameters:
            known = [one.name for one in self.parameters.values()]
            self.fail(f"there is no parameter called {token.text!r}", did_you_mean(token.text, known))
        self.position += 1
        return self.parameters[token.text.lower()]

    def statement(self) -> str:
        """A comparison, a membership, a pattern, or a parameter that is true."""
        one, sign = self.parameter(), self.here
        if sign.kind == "sign" and sign.text in COMPARISONS:
            self.position += 1
            return self.comparison(one, sign)
        negative = self.take("not")
        if self.take("in"):
            chosen = self.listed(one)
        elif self.take("like"):
            pattern = self.here
            if pattern.kind != "text":
                self.fail("expected a pattern in quotes after LIKE")
            self.position += 1
            chosen = [value for value in one.values if fnmatch.fnmatchcase(value.lower(), pattern.text.lower())]
        elif {value.lower() for value in one.values} == {"true", "false"} and not negative:
            chosen = [value for value in one.values if value.lower() == "true"]
        else:
            self.fail(
                f"expected a comparison after {one.name!r}, got {self.named()}", "write =, <>, <, <=, >, >=, IN or LIKE"
            )
            raise AssertionError
        statement = has(one, chosen)
        return f"not ({statement})" if negative else statement

    def listed(self, one: Parameter) -> list[str]:
        """The values in braces."""
        self.expect("{", "after IN")
        chosen = [self.value(one)]
        while self.take(","):
            chosen.append(self.value(one))
        self.expect("}", "at the end of the values")
        return list(dict.fromkeys(chosen))

    def value(self, one: Parameter) -> str:
        """A value of a parameter that is named here."""
        token = self.here
        if token.kind not in ("text", "number", "word"):
            self.fail(f"expected a value of {one.name!r}, got {self.named()}")
        self.position += 1
        wanted = one.aliases.get(token.text, token.text)
        found = next((value for value in one.values if _same(value, wanted)), None)
        if found is None:
            self.fail(f"{one.name!r} has no value {token.text!r}", did_you_mean(token.text, one.values[:50]), token)
        return str(found)

    def comparison(self, one: Parameter, sign: Token) -> str:
        """A parameter compared with a value or with another parameter."""
        compare, token = COMPARISONS[sign.text], self.here
        other = self.parameters.get(token.text.lower()) if token.kind in ("name", "word") else None
        # Among bare words, a value of the parameter comes before a parameter of that name.
        if token.kind == "name" or (other is not None and not any(_same(value, token.text) for value in one.values)):
            return self.between(one, self.parameter(), sign)
        if sign.text in EQUAL:
            wanted = self.value(one)
            return has(one, [value for value in one.values if compare(value, wanted)])
        number = _number(token.text)
        if token.kind == "end" or number is None:
            self.fail(f"expected a number after {sign.text!r}, got {self.named()}")
        self.position += 1
        return has(one, [value for value in one.values if compare(self.numeric(one, value, sign), number)])

    def numeric(self, one: Parameter, value: str, sign: Token) -> float:
        """A value as a number."""
        number = _number(value)
        if number is None:
            self.fail(
                f"{one.name!r} cannot be compared by {sign.text!r}: its value {value!r} is not a number",
                "compare by = or <>",
                sign,
            )
            raise AssertionError
        return number

    def between(self, one: Parameter, other: Parameter, sign: Token) -> str:
        """One parameter compared with another."""
        if len(one.values) * len(other.values) > MOST_PAIRS:
            self.fail(f"{one.name!r} and {other.name!r} have more than {MOST_PAIRS} pairs of values", None, sign)
        pieces = []
        for left in one.values:
            if sign.text in EQUAL:
                fits = [right for right in other.values if _same(left, right) == (sign.text in ("=", "=="))]
            else:
                compare = COMPARISONS[sign.text]
                number = self.numeric(one, left, sign)
                fits = [right for right in other.values if compare(number, self.numeric(other, right, sign))]
            pieces.append((left, fits))
        # Values with the same partners share a statement.
        grouped = itertools.groupby(sorted(pieces, key=lambda piece: piece[1]), key=lambda piece: piece[1])
        joined = [
            f"({has(one, [left for left, _ in group])} and {has(other, fits)})" for fits, group in grouped if fits
        ]
        return f"({' or '.join(joined)})" if joined else has(one, [])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _same(value: str, wanted: str) -> bool:
    """Whether two texts are the same value: as numbers, or as texts in upper or lower case."""
    if value.lower() == wanted.lower():
        return True
    first, second = _number(value), _number(wanted)
    return first is not None and first == second

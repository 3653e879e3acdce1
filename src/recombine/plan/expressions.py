"""The language of constraints: `colour=red and object in {dog, cat}`, `if 3 then not 5`. Python evaluates none of it."""

from __future__ import annotations

import dataclasses
import difflib
import operator
import re
import unicodedata
from typing import NoReturn

from recombine.errors import BadInput, did_you_mean
from recombine.plain import plain
from recombine.spaces import ProductSpace, Space

DEEPEST = 60
"""The deepest nesting of parentheses, `not` and `if`."""

TOKEN = re.compile(
    r"""(?P<sign>!=|≠|==|<=|>=|=|[<>(){},])
      | (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<word>(?!["'])(?:(?!!=)[^\s=≠<>(){},])+)""",
    re.VERBOSE | re.DOTALL,
)
WORDS = ("and", "or", "not", "if", "then", "in")
SIGNS = ("=", "==", "!=", "≠")
ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclasses.dataclass(frozen=True)
class Has:
    """The combination has one of these constituents."""

    parts: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Not:
    """The operand does not hold."""

    operand: Expression


@dataclasses.dataclass(frozen=True)
class All:
    """All operands hold."""

    operands: tuple[Expression, ...]


@dataclasses.dataclass(frozen=True)
class Any:
    """At least one operand holds."""

    operands: tuple[Expression, ...]


Expression = Has | Not | All | Any


@dataclasses.dataclass(frozen=True)
class Token:
    """A piece of the text: a sign, a word or a quoted name, with its start and end."""

    kind: str
    text: str
    start: int
    end: int


def parse(text: str, space: Space) -> Expression:
    """Parse an expression such as "colour=red and shape=cube", or "3 and not 5" for subsets, as a tree.

    `BadInput` marks the position of an error.
    """
    return _Parser(text, space).whole()


class _Parser:
    """Recursive descent, one method per rule: if, or, and, not, and statements about one factor."""

    def __init__(self, text: str, space: Space) -> None:
        self.text = text
        self.space = space
        self.factors: dict[str, tuple[str, ...]] | None = None
        self.offsets: dict[str, int] = {}
        if isinstance(space, ProductSpace):
            self.factors = dict(space.factors)
            self.offsets = dict(zip(self.factors, space.offsets, strict=True))
        self.tokens = self._cut()
        self.position = 0
        self.depth = 0

    def whole(self) -> Expression:
        expression = self._expression()
        if self.here.kind != "end":
            self._fail(f"{self._named(self.here)} is not expected here", self.here, "join with `and` or `or`")
        return expression

    def _cut(self) -> list[Token]:
        tokens, position = list[Token](), 0
        while position < len(self.text):
            if self.text[position].isspace():
                position += 1
                continue
            match = TOKEN.match(self.text, position)
            if match is None:
                self._fail("this quote is not closed", position, "close it, or put a backslash before it")
            kind, text = str(match.lastgroup), match.group()
            if kind == "quoted":
                text = re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
            elif kind == "word" and text.lower() in WORDS:
                kind, text = "keyword", text
            tokens.append(Token(kind, text, position, match.end()))
            position = match.end()
        return [*tokens, Token("end", "", len(self.text), len(self.text))]

    @property
    def here(self) -> Token:
        return self.tokens[self.position]

    def _is(self, *words: str) -> bool:
        """Whether the next token is one of these signs or keywords. Quoted names never are."""
        return self.here.kind in ("sign", "keyword") and self.here.text.lower() in words

    def _take(self, *words: str) -> bool:
        if not self._is(*words):
            return False
        self.position += 1
        return True

    def _expect(self, word: str, after: str) -> None:
        if not self._take(word):
            self._fail(f"expected {word!r} {after}, got {self._named(self.here)}", self.here)

    def _expression(self) -> Expression:
        self.depth += 1
        if self.depth > DEEPEST:
            self._fail("the nesting is too deep", self.here, "write several constraints")
        if self._take("if"):
            condition = self._expression()
            self._expect("then", "after the condition of an if")
            expression = Any((Not(condition), self._expression()))
        else:
            expression = self._either()
        self.depth -= 1
        return expression

    def _either(self) -> Expression:
        operands = [self._both()]
        while self._take("or"):
            operands.append(self._both())
        return operands[0] if len(operands) == 1 else Any(tuple(operands))

    def _both(self) -> Expression:
        operands = [self._operand()]
        while self._take("and"):
            operands.append(self._operand())
        return operands[0] if len(operands) == 1 else All(tuple(operands))

    def _operand(self) -> Expression:
        negative = False
        while self._take("not"):
            negative = not negative
        if self._take("("):
            operand = self._expression()
            self._expect(")", "at the end of the parenthesis")
        elif self.factors is None:
            operand = Has((self._module(),))
        else:
            operand = self._statement()
        return Not(operand) if negative else operand

    def _module(self) -> int:
        token = self._name("the number of a module")
        if not token.text.isdecimal() or int(token.text) >= self.space.width:
            self._fail(f"there is no module {token.text!r}", token, f"modules are numbered 0 to {self.space.width - 1}")
        return int(token.text)

    def _statement(self) -> Expression:
        token = self._name("a factor")
        assert self.factors is not None
        if token.text not in self.factors:
            self._fail(f"there is no factor called {token.text!r}", token, self._meant(token.text))
        if self._is(*SIGNS):
            same = self.here.text in ("=", "==")
            self.position += 1
            statement = Has((self._level(token.text),))
            return statement if same else Not(statement)
        if self._is(*ORDERS):
            return self._ordered(token.text)
        negative = self._take("not")
        if not self._take("in"):
            self._fail(f"expected =, !=, <, <=, >, >= or in after {token.text!r}", self.here)
        statement = Has(self._levels(token.text))
        return Not(statement) if negative else statement

    def _ordered(self, factor: str) -> Expression:
        """A comparison of numbers, such as height <= 3."""
        sign = self.here
        self.position += 1
        limit = self._name(f"a number after {sign.text}")
        assert self.factors is not None
        numbers = []
        for text, token in [(limit.text, limit), *((level, sign) for level in self.factors[factor])]:
            try:
                numbers.append(float(text))
            except ValueError:
                what = (
                    f"{text!r} is not a number"
                    if token is limit
                    else f"{factor!r} has the level {text!r}, which is not a number"
                )
                self._fail(what, token, "compare by =, != or in")
        compare = ORDERS[sign.text]
        chosen = [index for index, number in enumerate(numbers[1:]) if compare(number, numbers[0])]
        return Has(tuple(self.offsets[factor] + index for index in chosen))

    def _levels(self, factor: str) -> tuple[int, ...]:
        self._expect("{", "after in")
        levels = [self._level(factor)]
        while self._take(","):
            levels.append(self._level(factor))
        self._expect("}", "at the end of the levels")
        return tuple(dict.fromkeys(levels))

    def _level(self, factor: str) -> int:
        token = self._name(f"a level of {factor!r}", keywords=True)
        assert self.factors is not None
        levels = self.factors[factor]
        if token.text not in levels:
            problem = f"{factor!r} has no level {token.text!r}"
            self._fail(problem, token, did_you_mean(token.text, levels[:50]))
        return self.offsets[factor] + levels.index(token.text)

    def _name(self, what: str, *, keywords: bool = False) -> Token:
        token = self.here
        if token.kind not in ("word", "quoted", *(["keyword"] if keywords else [])):
            fix = "put quotes around a name that is one of " + ", ".join(WORDS) if token.kind == "keyword" else None
            self._fail(f"expected {what}, got {self._named(token)}", token, fix)
        self.position += 1
        return token

    def _meant(self, word: str) -> str:
        """A hint: the factor that has a level of this name, or the nearest factor."""
        assert self.factors is not None
        for factor, levels in self.factors.items():
            if word in levels and not difflib.get_close_matches(word, self.factors, n=1, cutoff=0.8):
                return f"write a level with its factor: {factor}={word}"
        return did_you_mean(word, list(self.factors)[:50])

    @staticmethod
    def _named(token: Token) -> str:
        return "the end" if token.kind == "end" else repr(token.text)

    def _fail(self, what: str, where: Token | int, fix: str | None = None) -> NoReturn:
        start, end = (where, where + 1) if isinstance(where, int) else (where.start, where.end)
        before, marked = plain(self.text[:start]), plain(self.text[start:end])
        line = f"  {plain(self.text)}\n  {' ' * _cells(before)}{'^' * max(1, _cells(marked))}"
        raise BadInput(f"A constraint cannot be parsed: {what}.\n{line}", fix=fix)


def _cells(text: str) -> int:
    """The number of terminal cells that a text takes."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)

"""The language of constraints: `colour=red and object in {dog, cat}`, `if 3 then not 5`. Nothing in it is evaluated by Python."""

from __future__ import annotations

import dataclasses
import difflib
import re
import unicodedata
from typing import NoReturn

from recombine.errors import BadInput, did_you_mean
from recombine.plain import plain
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace

DEEPEST = 60
"""How deep parentheses, `not` and `if` may stand in each other."""

TOKEN = re.compile(
    r"""(?P<sign>!=|≠|==|=|[(){},])
      | (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<word>(?!["'])(?:(?!!=)[^\s=≠(){},])+)""",
    re.VERBOSE | re.DOTALL,
)
WORDS = ("and", "or", "not", "if", "then", "in")
SIGNS = ("=", "==", "!=", "≠")


@dataclasses.dataclass(frozen=True)
class Has:
    """The combination has one of these constituents."""

    parts: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Not:
    """The other does not hold."""

    one: Expression


@dataclasses.dataclass(frozen=True)
class All:
    """All of them hold."""

    each: tuple[Expression, ...]


@dataclasses.dataclass(frozen=True)
class Any:
    """At least one of them holds."""

    each: tuple[Expression, ...]


Expression = Has | Not | All | Any


@dataclasses.dataclass(frozen=True)
class Token:
    """A piece of the text: a sign, a word or a quoted name, and where it begins and ends."""

    kind: str
    text: str
    start: int
    end: int


def parse(text: str, space: Space) -> Expression:
    """What an expression says of the combinations of a space; BadInput with a caret at the place of an error."""
    return _Parser(text, space).whole()


class _Parser:
    """Recursive descent, one method for each rule: if, or, and, not, and what is said of one factor."""

    def __init__(self, text: str, space: Space) -> None:
        self.text = text
        self.space = space
        self.factors: dict[str, tuple[str, ...]] | None = None
        self.offsets: dict[str, int] = {}
        if isinstance(space, ProductSpace):
            self.factors = dict(space.factors)
            self.offsets = dict(zip(self.factors, space.offsets, strict=True))
        self.tokens = self._cut()
        self.place = 0
        self.depth = 0

    def whole(self) -> Expression:
        made = self._expression()
        if self.here.kind != "end":
            self._fail(f"{self._named(self.here)} was not expected here", self.here, "join with and, or or")
        return made

    def _cut(self) -> list[Token]:
        tokens, place = list[Token](), 0
        while place < len(self.text):
            if self.text[place].isspace():
                place += 1
                continue
            found = TOKEN.match(self.text, place)
            if found is None:
                self._fail("this quote is not closed", place, "close it, or write a backslash before it")
            kind, text = str(found.lastgroup), found.group()
            if kind == "quoted":
                text = re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
            elif kind == "word" and text.lower() in WORDS:
                kind, text = "keyword", text
            tokens.append(Token(kind, text, place, found.end()))
            place = found.end()
        return [*tokens, Token("end", "", len(self.text), len(self.text))]

    @property
    def here(self) -> Token:
        return self.tokens[self.place]

    def _is(self, *words: str) -> bool:
        """Whether a sign or keyword stands here; quoted names are never one."""
        return self.here.kind in ("sign", "keyword") and self.here.text.lower() in words

    def _take(self, *words: str) -> bool:
        if not self._is(*words):
            return False
        self.place += 1
        return True

    def _expect(self, word: str, after: str) -> None:
        if not self._take(word):
            self._fail(f"{word!r} was expected {after}, not {self._named(self.here)}", self.here)

    def _expression(self) -> Expression:
        self.depth += 1
        if self.depth > DEEPEST:
            self._fail("this is nested too deep", self.here, "write several constraints")
        if self._take("if"):
            condition = self._expression()
            self._expect("then", "after the condition of an if")
            made = Any((Not(condition), self._expression()))
        else:
            made = self._either()
        self.depth -= 1
        return made

    def _either(self) -> Expression:
        found = [self._both()]
        while self._take("or"):
            found.append(self._both())
        return found[0] if len(found) == 1 else Any(tuple(found))

    def _both(self) -> Expression:
        found = [self._one()]
        while self._take("and"):
            found.append(self._one())
        return found[0] if len(found) == 1 else All(tuple(found))

    def _one(self) -> Expression:
        negative = False
        while self._take("not"):
            negative = not negative
        if self._take("("):
            made = self._expression()
            self._expect(")", "at the end of the parenthesis")
        elif self.factors is None:
            made = Has((self._module(),))
        else:
            made = self._statement()
        return Not(made) if negative else made

    def _module(self) -> int:
        token = self._name("the number of a module")
        if not token.text.isdecimal() or int(token.text) >= self.space.width:
            self._fail(
                f"there is no module {token.text!r}",
                token,
                f"modules are numbered 0 to {self.space.width - 1}",
            )
        return int(token.text)

    def _statement(self) -> Expression:
        token = self._name("a factor")
        assert self.factors is not None
        if token.text not in self.factors:
            self._fail(f"there is no factor called {token.text!r}", token, self._meant(token.text))
        if self._is(*SIGNS):
            same = self.here.text in ("=", "==")
            self.place += 1
            made = Has((self._level(token.text),))
            return made if same else Not(made)
        negative = self._take("not")
        if not self._take("in"):
            self._fail(f"=, != or in was expected after {token.text!r}", self.here)
        made = Has(self._levels(token.text))
        return Not(made) if negative else made

    def _levels(self, factor: str) -> tuple[int, ...]:
        self._expect("{", "after in")
        found = [self._level(factor)]
        while self._take(","):
            found.append(self._level(factor))
        self._expect("}", "at the end of the levels")
        return tuple(dict.fromkeys(found))

    def _level(self, factor: str) -> int:
        token = self._name(f"a level of {factor!r}", keywords=True)
        assert self.factors is not None
        levels = self.factors[factor]
        if token.text not in levels:
            said = f"{factor!r} has no level {token.text!r}"
            self._fail(said, token, did_you_mean(token.text, levels[:50]))
        return self.offsets[factor] + levels.index(token.text)

    def _name(self, what: str, *, keywords: bool = False) -> Token:
        token = self.here
        if token.kind not in ("word", "quoted", *(["keyword"] if keywords else [])):
            fix = (
                "put quotes around a name that is one of " + ", ".join(WORDS)
                if token.kind == "keyword"
                else None
            )
            self._fail(f"{what} was expected, not {self._named(token)}", token, fix)
        self.place += 1
        return token

    def _meant(self, word: str) -> str:
        """The nearest factor; or the factor that has a level of this name."""
        assert self.factors is not None
        for factor, levels in self.factors.items():
            if word in levels and not difflib.get_close_matches(word, self.factors, n=1, cutoff=0.8):
                return f"a level is written with its factor: {factor}={word}"
        return did_you_mean(word, list(self.factors)[:50])

    @staticmethod
    def _named(token: Token) -> str:
        return "the end" if token.kind == "end" else repr(token.text)

    def _fail(self, what: str, where: Token | int, fix: str | None = None) -> NoReturn:
        start, end = (where, where + 1) if isinstance(where, int) else (where.start, where.end)
        before, marked = plain(self.text[:start]), plain(self.text[start:end])
        line = f"  {plain(self.text)}\n  {' ' * _cells(before)}{'^' * max(1, _cells(marked))}"
        raise BadInput(f"A constraint cannot be read: {what}.\n{line}", fix=fix)


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)

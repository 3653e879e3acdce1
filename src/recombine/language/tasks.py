"""Deterministic tasks on text: their right answers, and the prompts for a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from recombine.errors import BadInput

Variant = Literal["common", "rare"]
VARIANTS: tuple[Variant, ...] = ("common", "rare")
DECODE, ENCODE = "decode", "encode"
"""In `encode` the varied text is the input, in all other tasks it is the answer."""
SHIFTS = {"common": 13, "rare": 12}
"""The shifts of the cipher. The first is frequent on the internet, the second is not."""
FUNCTIONS = {"common": (9, 32), "rare": (7, 31)}
"""The functions x * a/5 + b: Celsius to Fahrenheit, and one without a use."""
LETTERS = {"common": 0, "rare": 1}
"""The index of the letter of each word that goes into an acronym."""
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
PLACES = ("first", "second", "third", "fourth", "fifth")
ONLY = "and write nothing else"

CIPHER = (
    "In the shift cipher rot-{shift} every letter of a message is replaced by the letter {shift} places further on in "
    "the alphabet; after z it goes on with a. "
)


def shifted(text: str, by: int) -> str:
    """Shift each letter in the alphabet, cyclically; other characters stay. A negative shift goes back."""
    return "".join(_moved(sign, by) for sign in text)


def _moved(sign: str, by: int) -> str:
    index = ALPHABET.find(sign.lower())
    if index < 0 or len(sign.lower()) != 1:
        return sign
    moved = ALPHABET[(index + by) % 26]
    return moved.upper() if sign.isupper() else moved


def backwards(text: str) -> str:
    """The words in reverse order."""
    return " ".join(reversed(text.split()))


def in_order(words: Sequence[str], *, descending: bool = False) -> str:
    """The words in alphabetical order."""
    return " ".join(sorted(words, reverse=descending))


def acronym(words: Sequence[str], letter: int = 0) -> str:
    """One letter of each word, by default the first."""
    short = [word for word in words if len(word) <= letter]
    if short:
        raise BadInput(f"The word {short[0]!r} has no letter number {letter + 1}.", fix="give longer words")
    return "".join(word[letter] for word in words)


def linear(number: int, factor: int, constant: int) -> str:
    """number * factor/5 + constant, exactly: as a whole number if it is one, with one decimal otherwise."""
    tenths = number * factor * 2 + constant * 10
    return str(tenths // 10) if tenths % 10 == 0 else f"{'-' * (tenths < 0)}{abs(tenths) // 10}.{abs(tenths) % 10}"


def decode_prompt(cipher: str, shift: int) -> str:
    return f"{CIPHER.format(shift=shift)}Decode this message from rot-{shift} {ONLY}.\n\n{cipher}"


def encode_prompt(text: str, shift: int) -> str:
    return f"{CIPHER.format(shift=shift)}Encode this message in rot-{shift} {ONLY}.\n\n{text}"


def reversal_prompt(text: str) -> str:
    return f"Give these words in the opposite order, the last word first, with a space between words, {ONLY}.\n\n{text}"


def counting_prompt(letters: str) -> str:
    return f"How many letters are there in this string? Give the number in digits {ONLY}.\n\n{letters}"


def linear_prompt(number: int, factor: int, constant: int) -> str:
    return f"Multiply this number by {factor}/5, add {constant} to that, give the result {ONLY}.\n\n{number}"


def sorting_prompt(words: Sequence[str], *, descending: bool) -> str:
    order = "from z to a" if descending else "from a to z"
    return f"Sort these words alphabetically {order}, with a space between words, {ONLY}.\n\n{' '.join(words)}"


def acronym_prompt(words: Sequence[str], letter: int) -> str:
    return f"Take the {PLACES[letter]} letter of each of these words, join them without spaces {ONLY}.\n\n{' '.join(words)}"

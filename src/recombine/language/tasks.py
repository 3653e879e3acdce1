"""Deterministic tasks on text: their right answers, and the prompts for a model."""

from __future__ import annotations

from typing import Literal

Variant = Literal["common", "rare"]
VARIANTS: tuple[Variant, ...] = ("common", "rare")
DECODE, ENCODE = "decode", "encode"
"""In `encode` the varied text is the input, in all other tasks it is the answer."""
SHIFTS = {"common": 13, "rare": 12}
"""The shifts of the cipher. The first is frequent on the internet, the second is not."""
FUNCTIONS = {"common": (9, 32), "rare": (7, 31)}
"""The functions x * a/5 + b: Celsius to Fahrenheit, and one without a use."""
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
LETTERS = {"common": 0, "rare": 1}
PLACES = {"common": "first", "rare": "second"}
"""The index, and its name, of the letter of each word that goes into an acronym."""

CIPHER = (
    "In the shift cipher rot-{shift} every letter of a message is replaced by the letter {shift} places further on in "
    "the alphabet; after z it goes on with a. "
)
PROMPTS = {
    DECODE: CIPHER + "Decode this message from rot-{shift}",
    ENCODE: CIPHER + "Encode this message in rot-{shift}",
    "reversal": "Give these words in the opposite order, the last word first, with a space between words,",
    "counting": "How many letters are there in this string? Give the number in digits",
    "linear": "Multiply this number by {factor}/5, add {constant} to that, give the result",
    "sorting": "Sort these words alphabetically {order}, with a space between words,",
    "acronym": "Take the {place} letter of each of these words, join them without spaces",
}


def prompt(task: str, given: str, **settings: str | int) -> str:
    """The question of a task about a given text."""
    return f"{PROMPTS[task].format(**settings)} and write nothing else.\n\n{given}"


def shifted(text: str, by: int) -> str:
    """Shift each letter in the alphabet, cyclically; other characters stay. A negative shift goes back."""
    moved = ALPHABET[by % 26 :] + ALPHABET[: by % 26]
    return text.translate(str.maketrans(ALPHABET + ALPHABET.upper(), moved + moved.upper()))


def linear(number: int, factor: int, constant: int) -> str:
    """number * factor/5 + constant, exactly: as a whole number if it is one, with one decimal otherwise."""
    tenths = number * factor * 2 + constant * 10
    return str(tenths // 10) if tenths % 10 == 0 else f"{'-' * (tenths < 0)}{abs(tenths) // 10}.{abs(tenths) % 10}"

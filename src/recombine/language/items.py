"""Items: questions with one right answer, whose task is common or rare and whose text is more or less probable."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from recombine.errors import BadInput, did_you_mean
from recombine.language.words import english

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

LENGTHS = (2, 3, 4, 5, 6)
"""The lengths of the words of a text, in random order; all texts have the same length."""
LEVELS = {"high": (2.0, -22.0, 0.0), "medium": (0.25, -34.0, -27.0), "low": (-0.75, -60.0, -39.0)}
"""The sharpness with which texts of each level are drawn (see `Bigrams.draw`), and the range of their log-probability."""
COUNTS = (20, 30, 40, 50)
"""The numbers of letters to count; in the rare variant one more or one fewer."""
NUMBERS = range(100, 540, 5)
"""The arguments of linear functions. Results are whole numbers of three digits."""
MAX_DRAWS = 1000


@dataclasses.dataclass(frozen=True)
class Item:
    """One question with its right answer."""

    task: str
    variant: Variant
    prompt: str
    answer: str
    input: str
    """The text of the question, without the instruction."""
    output: str
    """The text of the answer."""
    input_logprob: float | None
    output_logprob: float | None
    """Natural logarithms of the probabilities of input and output; None if unknown."""
    group: str
    """Items on the same text share a group."""

    @functools.cached_property
    def name(self) -> str:
        """A hash of task, variant, prompt and answer."""
        text = json.dumps([self.task, self.variant, self.prompt, self.answer])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def make_items(number: int, seed: int = 0, tasks: Sequence[str] = (), shifts: Mapping[str, int] = SHIFTS) -> list[Item]:
    """Make items of each task, variant and level of probability.

    Ciphers and reversal use the same texts in both variants, so that tasks are comparable.

    Args:
        number: The number of items of each kind. A larger number starts with the same items.
        seed: The seed.
        tasks: The names of tasks; all by default.
        shifts: The shifts of the common and the rare cipher.

    Returns:
        The items.

    Example:
        ```python
        items = make_items(40, tasks=["decode"])
        items[0].prompt, items[0].answer
        ```
    """
    unknown = [name for name in tasks if name not in TASKS]
    if unknown:
        raise BadInput(f"There is no task {unknown[0]!r}.", fix=did_you_mean(unknown[0], TASKS))
    if number < 1:
        raise BadInput(f"At least one item of each kind is needed, got {number}.", fix="40 is usual")
    if len({shifts[variant] % 26 for variant in VARIANTS} | {0}) < 3:
        raise BadInput(
            f"The shifts {shifts['common']} and {shifts['rare']} do not make two ciphers.",
            fix="give two different ones between 1 and 25, the common one first",
        )
    chosen = [name for name in TASKS if not tasks or name in tasks]
    seen: set[str] = set()
    items: dict[str, Item] = {}
    for index in range(number):
        texts = _texts(np.random.default_rng([seed, index]), seen)
        for task, name in enumerate(TASKS):
            if name in chosen:
                rng = np.random.default_rng([seed, index, task + 1])
                items |= {item.name: item for item in TASKS[name](texts, index, rng, shifts)}
    return list(items.values())


def _texts(rng: np.random.Generator, seen: set[str]) -> dict[str, str]:
    """A text of each level, with words of the same lengths in the same order."""
    lengths = [int(length) for length in rng.permutation(LENGTHS)]
    texts = {}
    for level, (sharpness, lowest, highest) in LEVELS.items():
        for _ in range(MAX_DRAWS):
            text = english().draw(rng, lengths, sharpness)
            if text not in seen and lowest < english().log_probability(text) < highest:
                break
        else:
            raise BadInput("There are not enough different texts.", fix="ask for fewer items")
        texts[level] = text
        seen.add(text)
    return texts


def shifted(text: str, by: int) -> str:
    """Shift each letter in the alphabet, cyclically; other characters stay. A negative shift goes back."""
    moved = ALPHABET[by % 26 :] + ALPHABET[: by % 26]
    return text.translate(str.maketrans(ALPHABET + ALPHABET.upper(), moved + moved.upper()))


def linear(number: int, factor: int, constant: int) -> str:
    """number * factor/5 + constant, exactly: as a whole number if it is one, with one decimal otherwise."""
    tenths = number * factor * 2 + constant * 10
    return str(tenths // 10) if tenths % 10 == 0 else f"{'-' * (tenths < 0)}{abs(tenths) // 10}.{abs(tenths) % 10}"


Texts = Mapping[str, str]
Shifts = Mapping[str, int]


def _item(task: str, variant: Variant, given: str, answer: str, group: str, **settings: str | int) -> Item:
    logprob = english().log_probability
    prompt = f"{PROMPTS[task].format(**settings)} and write nothing else.\n\n{given}"
    return Item(task, variant, prompt, answer, given, answer, logprob(given), logprob(answer), group)


def _cipher(task: str, texts: Texts, index: int, rng: np.random.Generator, shifts: Shifts) -> Iterator[Item]:
    for text in texts.values():
        for variant in VARIANTS:
            cipher = shifted(text, shifts[variant])
            given, answer = (cipher, text) if task == DECODE else (text, cipher)
            yield _item(task, variant, given, answer, text, shift=shifts[variant])


def _reversal(texts: Texts, index: int, rng: np.random.Generator, shifts: Shifts) -> Iterator[Item]:
    """One variant only: the text varies, the task does not."""
    for text in texts.values():
        yield _item("reversal", "common", " ".join(reversed(text.split())), text, text)


def _counting(texts: Texts, index: int, rng: np.random.Generator, shifts: Shifts) -> Iterator[Item]:
    """Round numbers of letters, and their neighbours."""
    count = COUNTS[index % len(COUNTS)]
    beside = count + (1 if (index // len(COUNTS)) % 2 == 0 else -1)
    for variant, letters in zip(VARIANTS, (count, beside), strict=True):
        given = "".join(rng.choice(list(ALPHABET), letters))
        yield _item("counting", variant, given, str(letters), f"counting {index}")


def _linear(texts: Texts, index: int, rng: np.random.Generator, shifts: Shifts) -> Iterator[Item]:
    # A fixed order in which all numbers occur once before one repeats.
    number = int(NUMBERS[(index * 37) % len(NUMBERS)])
    for variant in VARIANTS:
        factor, constant = FUNCTIONS[variant]
        answer = linear(number, factor, constant)
        yield _item("linear", variant, str(number), answer, f"linear {number}", factor=factor, constant=constant)


def _sorting(texts: Texts, index: int, rng: np.random.Generator, shifts: Shifts) -> Iterator[Item]:
    lengths = [int(length) for length in rng.permutation(LENGTHS)]
    given = english().draw(rng, lengths, 0.0)
    words = sorted(given.split())
    orders = (("from a to z", words), ("from z to a", words[::-1]))
    for variant, (order, ordered) in zip(VARIANTS, orders, strict=True):
        yield _item("sorting", variant, given, " ".join(ordered), " ".join(words), order=order)


def _acronym(texts: Texts, index: int, rng: np.random.Generator, shifts: Shifts) -> Iterator[Item]:
    """The letters of a listed word, and the same letters in another order."""
    target = str(rng.choice(_spellable()))
    mixed = target
    while mixed in english().number:
        mixed = "".join(rng.permutation(list(target)))
    for answer in (target, mixed):
        for variant in VARIANTS:
            words = [str(rng.choice(_by_letter(LETTERS[variant])[letter])) for letter in answer]
            yield _item("acronym", variant, " ".join(words), answer, answer, place=PLACES[variant])


@functools.cache
def _by_letter(position: int) -> dict[str, list[str]]:
    """The listed words by their letter at one position."""
    words: dict[str, list[str]] = {}
    for word in english().words:
        words.setdefault(word[position], []).append(word)
    return words


@functools.cache
def _spellable() -> list[str]:
    """Listed words of five different letters, for each of which some word has it at each position in `LETTERS`."""
    may = set.intersection(*(set(_by_letter(position)) for position in LETTERS.values()))
    return [word for word in english().words if len(set(word)) == len(word) == 5 and set(word) <= may]


Make = Callable[[Texts, int, np.random.Generator, Shifts], Iterator[Item]]
TASKS: dict[str, Make] = {
    DECODE: functools.partial(_cipher, DECODE),
    ENCODE: functools.partial(_cipher, ENCODE),
    "reversal": _reversal,
    "counting": _counting,
    "linear": _linear,
    "sorting": _sorting,
    "acronym": _acronym,
}

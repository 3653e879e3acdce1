"""Sets of prompts that come with recombine."""

from __future__ import annotations

from recombine.pipelines.prompt_set import PromptSet, SetPrompts, SlotPrompts

ANIMALS = (
    "cat", "dog", "horse", "cow", "sheep", "pig", "rabbit", "fox", "bear", "lion",
    "tiger", "elephant", "giraffe", "zebra", "monkey", "penguin", "owl", "duck", "frog", "turtle",
)  # fmt: skip
COLOURS = ("red", "green", "blue", "yellow")
SOLIDS = ("cube", "sphere", "cylinder", "cone")
PRODUCE = (
    "apple", "banana", "orange", "lemon", "pear", "strawberry", "pineapple", "watermelon",
    "tomato", "carrot", "cucumber", "broccoli", "pumpkin", "aubergine", "onion", "mushroom",
)  # fmt: skip
CLOTHES = (
    "top hat", "scarf", "raincoat", "tie", "pair of sunglasses",
    "crown", "backpack", "sweater", "cape", "apron",
)  # fmt: skip
MATERIALS = ("wood", "glass", "gold", "stone", "paper", "wool", "ice", "clay", "plastic", "copper")
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
COUNTED = (
    "apples", "books", "candles", "balloons", "cups", "keys", "buttons", "bottles", "umbrellas", "chairs",
)  # fmt: skip


def built_in() -> dict[str, PromptSet]:
    """All of them by name."""
    ten = ANIMALS[:10]
    return {
        "animals": SetPrompts(concepts=ANIMALS),
        "coloured-solids": SetPrompts(concepts=tuple(f"{one} {other}" for one in COLOURS for other in SOLIDS)),
        "produce": SetPrompts(concepts=PRODUCE),
        "dressed-animals": SlotPrompts(
            slots={"animal": ten, "clothing": CLOTHES},
            template="a photo of {a animal} wearing {a clothing}",
            asked={
                "animal": "Is there {a animal} in the image?",
                "clothing": "Is the animal in the image wearing {a clothing}?",
            },
        ),
        "stacked-animals": SlotPrompts(
            slots={"top": ten, "middle": ten, "bottom": ten},
            template="a photo of {a top} standing on {a middle} standing on {a bottom}",
            asked={
                "top": "Is there {a top} at the top of the stack of animals in the image?",
                "middle": "Is there {a middle} in the middle of the stack of animals in the image?",
                "bottom": "Is there {a bottom} at the bottom of the stack of animals in the image?",
            },
            different=(("top", "middle", "bottom"),),
        ),
        "animals-of-materials": SlotPrompts(
            slots={
                "left": ten, "left material": MATERIALS,
                "middle": ten, "middle material": MATERIALS,
                "right": ten, "right material": MATERIALS,
            },
            template="three statues side by side: on the left {a left} made of {left material}, in the middle "
            "{a middle} made of {middle material}, on the right {a right} made of {right material}",
            asked={
                place + end: f"Is the statue {where} {what}?"
                for place, where in (
                    ("left", "on the left"), ("middle", "in the middle"), ("right", "on the right"),
                )
                for end, what in (("", f"{{a {place}}}"), (" material", f"made of {{{place} material}}"))
            },
            different=(("left", "middle", "right"),),
        ),
        "counting": SlotPrompts(
            slots={"number": NUMBERS, "object": COUNTED},
            template="a photo of {number} {object}",
            asked={
                "number": "Is the number of {object} in the image exactly {number}?",
                "object": "Are there {object} in the image?",
            },
        ),
    }  # fmt: skip

"""Prompts: sets of combinations of concepts, the sentences that ask for them, and samples of a set.

`prompt_sets` gives built-in sets and sets from YAML files. `SetPrompts` and `SlotPrompts` define a set in Python.
`draw_prompts` draws different prompts and assigns them to folds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.pipelines.prompts.drawing import Prompt as Prompt, draw_prompts as draw_prompts
    from recombine.pipelines.prompts.files import (
        built_in as built_in,
        prompt_sets as prompt_sets,
        read_sets as read_sets,
    )
    from recombine.pipelines.prompts.sets import (
        PromptSet as PromptSet,
        Question as Question,
        SetPrompts as SetPrompts,
        SlotPrompts as SlotPrompts,
    )

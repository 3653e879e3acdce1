"""Texts of simple letter and word tasks (ciphers, sorting, counting, ...) with known probabilities.

`make_items` makes questions for a language model and `read_items` reads them from a file; `is_right` judges an answer.
`DrawnLanguage` is a random language of letters for networks that are trained from scratch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.language.answers import is_right as is_right
    from recombine.language.drawn import DrawnLanguage as DrawnLanguage
    from recombine.language.item_files import read_items as read_items
    from recombine.language.items import Item as Item, make_items as make_items
    from recombine.language.words import Bigrams as Bigrams, english as english

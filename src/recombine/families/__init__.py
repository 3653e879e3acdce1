"""Task families: they draw tasks of a combination, make examples and own the metrics.

A `Family` is the configuration; `Family.draw` gives a `Teacher`, which makes tasks and batches. A family whose name
begins with `lookup` is a control: it has the same tasks, but nothing carries over from one combination to another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.families.base import (
        Batch as Batch,
        ExactMatchFamily as ExactMatchFamily,
        Family as Family,
        Task as Task,
        Teacher as Teacher,
    )
    from recombine.families.chained.chains import Chains as Chains
    from recombine.families.chained.hops import Hops as Hops
    from recombine.families.chained.lookup_chains import LookupChains as LookupChains
    from recombine.families.chained.lookup_hops import LookupHops as LookupHops
    from recombine.families.chained.nested import Nested as Nested
    from recombine.families.chained.string_tasks import StringTasks as StringTasks
    from recombine.families.ciphers import Ciphers as Ciphers
    from recombine.families.classification import ClassificationFamily as ClassificationFamily
    from recombine.families.episodes.grammars import Grammars as Grammars
    from recombine.families.episodes.grids import Grids as Grids
    from recombine.families.fill_in import FillIn as FillIn
    from recombine.families.goals import Goals as Goals
    from recombine.families.hyperteacher import Hyperteacher as Hyperteacher
    from recombine.families.ignored_part import IgnoredPart as IgnoredPart
    from recombine.families.lookup import Lookup as Lookup
    from recombine.families.lookup_goals import LookupGoals as LookupGoals
    from recombine.families.lookup_preferences import LookupPreferences as LookupPreferences
    from recombine.families.lookup_scan import LookupScan as LookupScan
    from recombine.families.lookup_sprites import LookupSprites as LookupSprites
    from recombine.families.maximum_sum import MaximumSum as MaximumSum
    from recombine.families.multiplication import Multiplication as Multiplication
    from recombine.families.objects import Objects as Objects
    from recombine.families.odd_one_out import OddOneOut as OddOneOut
    from recombine.families.pairs import Pairs as Pairs
    from recombine.families.picture import Picture as Picture
    from recombine.families.preferences import Preferences as Preferences
    from recombine.families.problem import Problem as Problem
    from recombine.families.puzzles.arc import Arc as Arc
    from recombine.families.puzzles.einstein import Einstein as Einstein
    from recombine.families.puzzles.mazes import Mazes as Mazes
    from recombine.families.puzzles.sudoku import Sudoku as Sudoku
    from recombine.families.regression import RegressionFamily as RegressionFamily
    from recombine.families.scan import Scan as Scan
    from recombine.families.scenes import Scenes as Scenes
    from recombine.families.sequences import SequenceFamily as SequenceFamily
    from recombine.families.sequences.function_calls import FunctionCalls as FunctionCalls
    from recombine.families.sequences.topics import Topics as Topics
    from recombine.families.silhouettes import Silhouettes as Silhouettes
    from recombine.families.sprites import Sprites as Sprites

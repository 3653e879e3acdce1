"""Function calling: functions that a model may call, calls in its answers, and how right they are.

`read_tools` reads functions with JSON Schema, `read_calls` and `read_tool_calls` read the calls of an answer,
`program_differences` compares calls as trees and `score_program` scores them. `synthetic_library` draws executable
functions, `split_programs` draws programs of them with functions, pairs or depths held out, and `granular_examples` and
`umbrella_examples` write the same programs as training data of two kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.calling.calls import (
        Call as Call,
        Nested as Nested,
        all_calls as all_calls,
        nested_pairs as nested_pairs,
    )
    from recombine.calling.execution import CannotRun as CannotRun, execute as execute
    from recombine.calling.functions import Function as Function, Library as Library, Parameter as Parameter
    from recombine.calling.granular import (
        Example as Example,
        granular_examples as granular_examples,
        umbrella_examples as umbrella_examples,
        with_tokens as with_tokens,
    )
    from recombine.calling.matching import (
        Difference as Difference,
        OneOf as OneOf,
        call_differences as call_differences,
        program_differences as program_differences,
        same_program as same_program,
    )
    from recombine.calling.metrics import CallScores as CallScores, score_program as score_program
    from recombine.calling.programs import (
        Program as Program,
        ProgramSplit as ProgramSplit,
        draw_program as draw_program,
        program_table as program_table,
        split_programs as split_programs,
    )
    from recombine.calling.reading import (
        Reading as Reading,
        read_calls as read_calls,
        read_tool_calls as read_tool_calls,
    )
    from recombine.calling.synthetic import synthetic_library as synthetic_library
    from recombine.calling.tool_files import make_library as make_library, read_tools as read_tools
    from recombine.calling.training_data import trained_pairs as trained_pairs

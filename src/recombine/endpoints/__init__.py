"""Audits of language models by questions: chat endpoints and Python functions.

`ChatEndpoint` asks an OpenAI-compatible endpoint, `load_function` loads a Python function. `audit_embers` asks all
items, keeps every answer in a folder, and reports the findings; `audit_tools` does the same for calls of functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.endpoints.answer_cache import AnswerCache as AnswerCache
    from recombine.endpoints.asking import ask_items as ask_items
    from recombine.endpoints.chat import (
        ChatEndpoint as ChatEndpoint,
        RequestFailed as RequestFailed,
        Unavailable as Unavailable,
    )
    from recombine.endpoints.embers_audit import EmbersAudit as EmbersAudit, audit_embers as audit_embers
    from recombine.endpoints.function import load_function as load_function
    from recombine.endpoints.tools_audit import ToolsAudit as ToolsAudit, audit_tools as audit_tools

"""The model that a command asks: an endpoint, or a Python function."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recombine.errors import BadInput

KEY = "RECOMBINE_LLM_KEY"
"""The environment variable with the key. The key is sent to the endpoint only, and never stored."""
AT_ONCE = 4
LONGEST = 86_400.0
"""Largest timeout in seconds: a day."""


@dataclasses.dataclass(frozen=True)
class Subject:
    """The model under audit."""

    ask: Callable[[str], Any]
    """From a prompt to the answer."""
    chat: Callable[[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]], Any] | None
    """From messages and tools to the message; None for a function."""
    settings: dict[str, Any]
    """Everything that its answers depend on. No secrets."""
    fix: Callable[[], str]
    """What to do about missing answers, if that is known."""


def read_subject(
    endpoint: str | None,
    model: str | None,
    function: str | None,
    temperature: float | None,
    timeout: float,
    key_variable: str,
) -> Subject:
    """The model that the options of a command name.

    Args:
        endpoint: The address of an endpoint.
        model: The name of its model.
        function: Instead of an endpoint: module:function.
        temperature: The temperature; None sends none.
        timeout: Seconds for one answer.
        key_variable: The environment variable with the key.
    """
    if (endpoint is None) == (function is None):
        fix = "--endpoint URL --model NAME, or --function module:function"
        raise BadInput("Either an endpoint or a function is needed.", fix=fix)
    if temperature is not None and not 0 <= temperature < math.inf:
        raise BadInput(f"A temperature is 0 or more, got {temperature:g}.", fix="0 is usual; `none` sends none")
    if function is not None:
        from recombine.endpoints.function import load_function, source_version

        if model is not None:
            raise BadInput("--model names the model of an endpoint.", fix="leave it out with --function")
        ask_function = load_function(function)
        return Subject(ask_function, None, {"model": function, "source": source_version(ask_function)}, str)
    if endpoint is None or not model:
        raise BadInput("The endpoint needs the name of a model.", fix="--model NAME")
    if not 0 < timeout <= LONGEST:
        raise BadInput(f"The timeout must be more than 0 seconds, at most a day, got {timeout:g}.", fix="60 is usual")
    from recombine.endpoints.chat import LIMIT, ChatEndpoint

    endpoint_chat = ChatEndpoint(endpoint, model, key_variable, timeout=timeout, limit=max(LIMIT, 2 * timeout))
    options = {} if temperature is None else {"temperature": temperature}

    def ask(prompt: str) -> str:
        return endpoint_chat.ask([{"role": "user", "content": prompt}], **options)

    def chat(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return endpoint_chat.message(messages, tools=list(tools), **options)

    settings = {"model": model, "endpoint": endpoint_chat.base, "temperature": temperature}
    return Subject(ask, chat, settings, lambda: endpoint_chat.fix)

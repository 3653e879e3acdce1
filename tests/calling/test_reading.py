"""Calls in answers: the same calls in every notation, and what is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from recombine.calling import Call, make_library, read_calls, read_tool_calls

LIBRARY = make_library(
    [
        {"name": "find", "parameters": {"properties": {"country": {"type": "string"}, "rank": {"type": "integer"}}}},
        {
            "name": "weather.now",
            "parameters": {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
        },
    ]
)
INNER = Call("find", {"country": "Peru"})
NESTED = Call("weather.now", {"city": INNER, "days": 3})
JSON = '{"name": "weather.now", "arguments": {"city": {"name": "find", "arguments": {"country": "Peru"}}, "days": 3}}'


@pytest.mark.parametrize(
    "text",
    [
        JSON,
        f"```json\n{JSON}\n```",
        f"Sure, here it is:\n{JSON}\nI hope this helps.",
        f"<think>find({{}}) or so</think>{JSON}",
        f"<tool_call>\n{JSON}\n</tool_call>",
        f"[{JSON}]",
        f'{{"tool_calls": [{JSON}]}}',
        '{"weather.now": {"city": {"name": "find", "arguments": {"country": "Peru"}}, "days": 3}}',
        '{"name": "weather.now", "arguments": {"city": "find(country=\'Peru\')", "days": 3}}',
        '{"function": "weather.now", "parameters": {"city": {"function": "find", "parameters": {"country": "Peru"}}, "days": 3}}',
        '{"name": "weather.now", "arguments": "{\\"city\\": \\"find(\'Peru\')\\", \\"days\\": 3}"}',
        '[{"name": "find", "arguments": {"country": "Peru"}, "label": "$var_1"}, '
        '{"name": "weather.now", "arguments": {"city": "$var_1.result$", "days": 3}}]',
        '[{"name": "find", "arguments": {"country": "Peru"}}, {"name": "weather.now", "arguments": {"city": "#1", "days": 3}}]',
        'weather.now(city=find(country="Peru"), days=3)',
        "[weather.now(find('Peru'), 3)]",
        'city = find("Peru")\nweather.now(city=city, days=3)',
        '```python\nfound = find(country="Peru")\nresult = weather.now(city=found["name"], days=3)\nprint(result)\n```'.replace(
            "print(result)", "result"
        ),
        'print(weather.now(**{"city": find("Peru"), "days": 3}))',
        "The call is:\n`weather.now(city=find('Peru'), days=3)`",
    ],
)
def test_one_nested_call_in_many_notations(text):
    reading = read_calls(text, LIBRARY)
    assert reading.calls == (NESTED,) and not reading.problem


def test_calls_beside_each_other():
    two = (INNER, Call("find", {"country": "Chad"}))
    for text in (
        'find("Peru")\nfind("Chad")',
        "[find('Peru'), find('Chad')]",
        json.dumps([call.record() for call in two]),
        "".join(f"<tool_call>{json.dumps(call.record())}</tool_call>" for call in two),
    ):
        assert read_calls(text, LIBRARY).calls == two


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "prose"),
        ("I cannot do that (sorry).", "prose"),
        ("The weather is fine.", "prose"),
        ("12", "prose"),
        ("[1, 2, 3]", "prose"),
        ('{"answer": "Lima"}', "prose"),
        ("find(country=", "unreadable"),
        ('{"name": "find", "arguments": {"country": ', "unreadable"),
        ("<tool_call>find the city</tool_call>", "unreadable"),
        ("find(country=open('/etc/passwd').read() + 1)", "unreadable"),
        ("[" * 5000, "prose"),
        ("find(" * 3000, "unreadable"),
    ],
)
def test_what_is_no_call(text, problem):
    reading = read_calls(text, LIBRARY)
    assert reading.calls == () and reading.problem == problem


def test_an_argument_too_many_is_kept():
    (call,) = read_calls('find("Peru", 2, 3)', LIBRARY).calls
    assert call.arguments == {"country": "Peru", "rank": 2, "positional 3": 3}


def test_native_calls_hold_no_inner_calls():
    def native(arguments):
        return [{"id": "1", "type": "function", "function": {"name": "weather.now", "arguments": arguments}}]

    reading = read_tool_calls(native('{"city": "find(\'Peru\')", "days": 3}'))
    assert reading.calls == (Call("weather.now", {"city": "find('Peru')", "days": 3}),)
    assert read_tool_calls(native({"days": 3})).calls == (Call("weather.now", {"days": 3}),)
    assert read_tool_calls(native("")).calls == (Call("weather.now", {}),)
    for wrong in (native("{oops"), native("[1]"), native(3), [{"function": None}], [3], "text", 3):
        assert read_tool_calls(wrong).problem == "unreadable"
    assert read_tool_calls(None).problem == read_tool_calls([]).problem == "prose"


VALUES = st.one_of(
    st.integers(-999, 999),
    st.booleans(),
    st.text("abcXYZ -", max_size=8),
    st.lists(st.integers(0, 9), min_size=2, max_size=3),
)
CALLS = st.recursive(
    st.builds(Call, st.sampled_from(["find", "f", "g.h"]), st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)),
    lambda inner: st.builds(
        Call, st.sampled_from(["find", "f", "g.h"]), st.dictionaries(st.sampled_from("abc"), VALUES | inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(call=CALLS)
def test_what_is_written_is_read(call):
    assert read_calls(json.dumps(call.record())).calls == (call,)
    # Python writes constants otherwise.
    text = str(call)
    assert read_calls(text).calls == (call,)


@settings(max_examples=80, deadline=None)
@given(text=st.text(alphabet='fid(){}[]",:=\n`<>$1', max_size=60))
def test_no_text_is_an_error(text):
    reading = read_calls(text, LIBRARY)
    assert bool(reading.calls) != bool(reading.problem)

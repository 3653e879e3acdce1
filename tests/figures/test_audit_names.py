from hypothesis import given
from hypothesis import strategies as st

from recombine.figures.audit_names import cut, told


def test_what_cannot_be_seen_is_told():
    assert told("a\x00\x1b[31m\n\u202eb\u2028\ud800") == "a\\x00\\x1b[31m\\n\\u202eb\\u2028\\ud800"


def test_scripts_stay_as_they_are():
    assert told("предикат 动作 العربية क्\u200dष 👩\u200d🔬") == "предикат 动作 العربية क्\u200dष 👩\u200d🔬"


@given(st.text(alphabet=st.characters(), max_size=40))
def test_any_text_can_be_written(text):
    told(text).encode("utf-8")


def test_names_are_cut():
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"

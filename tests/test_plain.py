"""Nothing is hidden in a text from data, and every script stays readable."""

from hypothesis import given, strategies as st

from recombine.plain import plain


def test_what_cannot_be_seen_is_told():
    assert plain("a\x00\x1b[31m\n\u202eb\u2028\ud800") == "a\\x00\\x1b[31m\\n\\u202eb\\u2028\\ud800"


def test_scripts_stay_as_they_are():
    assert plain("предикат 动作 العربية क्\u200dष 👩\u200d🔬") == "предикат 动作 العربية क्\u200dष 👩\u200d🔬"


@given(st.text(alphabet=st.characters(), max_size=40))
def test_any_text_can_be_written(text):
    plain(text).encode("utf-8")

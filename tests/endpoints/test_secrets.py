"""Keys in texts: no form of a key is left, and what is no key stays."""

from __future__ import annotations

import base64
import urllib.parse

import pytest
from hypothesis import given, strategies as st

from recombine.endpoints.secrets import REMOVED, without_secret

KEY = "sk-Ab+9/=xyz~QQ12"
KEYS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=60)


@given(KEYS, st.binary(max_size=12), st.binary(max_size=12))
def test_no_base64_of_a_text_with_the_key_holds_it(key, before, after):
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(before + key.encode() + after).decode()
        text = without_secret(whole, key)
        assert REMOVED in text
        # Of the key's own signs at most those at its ends are left, which other bytes decide too.
        first, last = 8 * len(before) // 6, -(-8 * (len(before) + len(key)) // 6)
        assert len(text.replace(REMOVED, "")) <= len(whole) - (last - first) + 4


@pytest.mark.parametrize(
    "form",
    [KEY, urllib.parse.quote(KEY), urllib.parse.quote_plus(KEY), urllib.parse.quote(KEY, safe=""), KEY.encode().hex()],
)
def test_other_forms(form):
    assert without_secret(f"before {form} after", KEY) == f"before {REMOVED} after"


def test_other_texts_stay():
    assert without_secret("red circle, blue square", KEY) == "red circle, blue square"

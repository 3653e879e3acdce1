from recombine.figures.audit_names import cut


def test_names_are_cut():
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"

"""Constituents or combination: crossed random effects for the scores of combinations.

`parts.parts_or_combination` is the way in. `identification` says whether a table can answer, and what to
collect if it cannot; `design` holds the sparse design, `links` the links, `model` the fit, `bootstrap` the test of
the combination variance, and `standouts` the values and pairs that stand out.
"""

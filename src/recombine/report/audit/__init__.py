"""The page of an audit.

`page` puts it together, `answer` says the result in one sentence, `sections` makes the figures and tables of a score.
"""

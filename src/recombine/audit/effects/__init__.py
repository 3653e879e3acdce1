"""Which factors matter and which interact, in points of the score: `table.effects_finding` is the way in.

`additive` is the least-squares fit that all rows share, `sizes` turns sums of squares into sizes with intervals.
"""

"""From findings to advice: `advise.advise` is the way in.

`evidence` gathers the numbers of one score, `weak` finds values and pairs that are weak although training covers
them, `remedies` says what could raise the score and by how much, and `remarks` says everything else.
"""

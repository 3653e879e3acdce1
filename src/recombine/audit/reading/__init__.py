"""A user's table, read into combinations.

`read.read_cells` is the way in. `formats` recognises files and frames, `tables` opens them in a database that can
reach nothing else, `query` checks the user's filter and groups rows, `levels` numbers values, `combining` puts groups
together into cells, and `errors` explains what is wrong.
"""

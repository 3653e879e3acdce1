"""How well each factor can be read off each layer, and whether that goes with success.

`probing.decodability` is the way in. `files` reads activations, `questions` says what a
probe is asked, `linear_probe` is the probe, `cross_fitting` fits it on some combinations and scores it on others.
"""

"""Sweeps: a grid of runs over any settings, from a file or from Python, and what a store recorded of it."""

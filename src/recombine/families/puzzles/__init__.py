"""Families of puzzles on a grid: every cell of the grid has an answer, and a puzzle is solved where all of them are right."""

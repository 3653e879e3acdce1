"""Families whose answers take several steps, each of which needs the result of the one before, and their controls."""

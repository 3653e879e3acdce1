"""Measurements for the studies of other routes to composition: what a run costs, answers step by step, and wrong identifiers."""

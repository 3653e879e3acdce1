"""Embers of autoregression: does a language model do better on common tasks and probable texts?

`findings.embers_findings` is the way in and decides the claims; `regression` is the logistic mixed model.
"""

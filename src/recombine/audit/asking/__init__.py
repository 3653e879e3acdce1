"""Asking a model that can be called, so that its answers can be audited like any table.

`ask.ask_model` and `ask.audit_model` are the way in. `space` holds the combinations to ask about, `calling` the kinds
of models that can be called, `torch_hooks` the recording of a PyTorch module's activations.
"""

"""Logs of evaluation tools, read as tables.

`Log` is the way in. Each format is one file with a `Reader`: `inspect_ai`, `lm_eval`, `helm`, `geneval`, `wandb`,
`mlflow`, and `plain_table` for any table with prompts. `template` finds factors in prompts, `json_stream` reads large
documents one item at a time.
"""

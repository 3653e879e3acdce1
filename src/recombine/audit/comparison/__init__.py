"""Two audits side by side: `scored` reads a table or the JSON of an audit, `compare` pairs them, `gate` judges the result."""

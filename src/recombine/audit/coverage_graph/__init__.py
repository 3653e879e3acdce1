"""What a table of facts covers without any model: which combinations follow from it, and what to collect next.

`audit.audit_coverage_graph` is the way in, `facts` reads the table, `findings` holds the result.
"""

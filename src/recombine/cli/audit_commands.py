"""`recombine audit` and the commands below it. A module is imported when its command is called."""

from __future__ import annotations

from cyclopts import App, Parameter

from recombine.cli.audit import audit

audit_app = App(name="audit", help_format="plaintext", default_parameter=Parameter(negative=""))
audit_app.default(audit)
audit_app.command(
    "recombine.cli.audit_compare:compare",
    name="compare",
    help="Compare two models, or one before and after: what was gained, what was lost, and where.",
)

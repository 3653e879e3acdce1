"""Audits of function calling: which functions can a model call, and which pairs of them can it nest?

`questions.make_questions` plans the questions, `grading.grade` compares answers with the right calls, and
`findings.tools_findings` says where the model fails.
"""

"""Arms that were timed or checked beside eager: lines, tables and rows.

Imports its parent's forms, `statistics` and `values`.
"""

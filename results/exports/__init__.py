"""Stored runs in the formats of other programs: each a pure function from a run to documents.

May import every other room of `results`; none imports it.
"""

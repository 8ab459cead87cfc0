"""Results as text, CSV and pages.

May import every other room of `results`; none imports it.
"""

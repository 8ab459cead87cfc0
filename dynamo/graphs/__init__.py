"""Captured graphs apart from their models: their keys, files and inputs, and what records them.

May import `placeholders`, `private`, `state` and `results`.
"""

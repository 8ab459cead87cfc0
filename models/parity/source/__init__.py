"""Modules of any project: found in its code, and given arguments that they run with."""

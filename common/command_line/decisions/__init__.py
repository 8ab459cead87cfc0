"""Decisions on the command line: the commands that show them, and what a run does to come to them.

May import what `command_line` may.
"""

"""Commands on runs that are stored: show, list, index, history, export, report, repeat, remove.

May import what `command_line` may, and its options; measures nothing but by starting a run anew.
"""

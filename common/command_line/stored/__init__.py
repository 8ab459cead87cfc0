"""Commands on runs that are stored: show, list, export, report, repeat a case, remove.

May import what `command_line` may, and its options; measures nothing but by starting a run anew.
"""

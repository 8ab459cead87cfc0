"""Commands on runs that are stored: show, list, export, repeat a case, remove.

May import what `command_line` may, and its options; measures nothing but by starting a run anew.
"""

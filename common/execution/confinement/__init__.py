"""What ends processes, whatever ends us, and what a process gives up before it runs foreign code.

Imports nothing of ours.
"""

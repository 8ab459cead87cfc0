"""What runs the replicates of cases, a module for each: `--executor NAME` asks for one.

May import what is in `common/execution` beside it; the registry alone names what is here.
"""

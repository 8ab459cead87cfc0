"""What runs the replicates of cases, a module for each: `--executor NAME` asks for one.

`of_plugins` is around those of others. May import what is in `common/execution` beside it; the
registry alone names those that are ours.
"""

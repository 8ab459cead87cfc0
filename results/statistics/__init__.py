"""From raw samples to estimates, intervals and verdicts. Pure functions.

May import `values`.
"""

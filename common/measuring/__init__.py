"""The measuring protocol within one worker: arms, steady state, timed blocks, threads.

May import `checking`, `machine` and `interfaces`.
"""

"""The questions that can be asked of a model: what is measured, in which processes.

May import `measuring`, `checking`, `machine` and `interfaces`.
"""

"""One step of a case, and whether the steps of an arm compute what those of eager do.

May import `interfaces`.
"""

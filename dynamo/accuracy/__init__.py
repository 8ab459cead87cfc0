"""Whether two results are of the same computation, leaf by leaf, beyond what rounding explains.

May import `results`.
"""

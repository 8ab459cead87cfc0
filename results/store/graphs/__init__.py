"""A corpus of captured graphs: its folder, and one file of it to pass on.

May import what `store` may, and `store` itself.
"""

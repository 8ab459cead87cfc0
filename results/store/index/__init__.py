"""An index over any number of run directories, and how it is brought up to what those hold.

May import what `store` may, and `store` itself.
"""

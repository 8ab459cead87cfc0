"""What became of each model over many runs: from a run to rows of the index, from rows to changes.

Pure functions, but for `of_index`, which reads the index; what is compared of a run, and what must
be equal for it, `comparison` says.
"""

"""Two sides of a comparison, what became of each case between them, and gates. Pure functions.

May import `statistics`, `store` and `values`. A side is a run, or the CSV files of a run of
PyTorch's harness; what a study's cases are compared by, the study says (`Study.compared`).
"""

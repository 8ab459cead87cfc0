"""Settings of compilers: which values they take, and what torch's files say of Inductor's.

Imports no torch, and nothing else of `backends`.
"""

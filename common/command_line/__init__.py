"""From the arguments of a command line to a run and its exit code, and what is said meanwhile.

May import every other room of `common`; none imports it. Never imports torch.
"""

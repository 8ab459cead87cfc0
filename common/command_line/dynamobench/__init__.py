"""Command lines of PyTorch's harness: what each of its options comes to here, and the page on it.

May import what `command_line` may; no torch.
"""

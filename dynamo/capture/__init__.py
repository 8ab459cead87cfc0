"""What TorchDynamo captures of a callable, and what torch does not promise of it.

May import `state` and `results`.
"""

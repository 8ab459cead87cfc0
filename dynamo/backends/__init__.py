"""Backends: anything that turns a module and its inputs into a callable of the same signature.

May import nothing else of `dynamo`, but what stands below. What a backend says of itself is known
without torch, which its functions import.
"""

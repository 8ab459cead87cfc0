"""Backends: anything that turns a module and its inputs into a callable of the same signature.

May import nothing else of `dynamo`.
"""

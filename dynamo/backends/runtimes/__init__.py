"""Runtimes outside PyTorch, each importable without the package it needs.

May import its parent's `compilers`, `declared` and `options`, and what these need.
"""

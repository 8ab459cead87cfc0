"""Runtimes outside PyTorch, each importable without the package it needs.

May import what stands beside this folder, such as `compilers` and `declared`, and what that needs.
"""

"""Where models come from: tables, names of timm, a checkout of pytorch/benchmark, users.

Imports a builder by the name in a table alone, when a model is loaded.
"""

"""Dynamometer: what `torch.compile` with a given backend does to real PyTorch models.

The code lives in the top-level folders `common`, `dynamo`, `results` and `models` of the
repository; this package holds relative links to them, so `dynamometer.common` is the import name
everywhere, installed or not (see docs/decisions/0001-layout.md).
"""

__version__ = "0.1.0"

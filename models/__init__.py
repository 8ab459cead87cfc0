"""The suites: what each holds, in tables of a folder of its name, and builders of their models."""

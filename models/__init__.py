"""Builders of the embedded models, and the TOML tables that describe each of them."""

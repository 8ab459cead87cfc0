"""Networks with random weights, built from configurations, and their inputs.

One function for each builder that a table names.
"""

"""`dynamometer bisect`: since which commit, or which version, a model is worse."""

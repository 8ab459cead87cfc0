"""Study: which graphs does a model consist of? They are put into a corpus."""

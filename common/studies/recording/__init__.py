"""Study: which graphs does a model consist of, and which of these are decided on?"""

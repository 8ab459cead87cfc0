"""Study: does each model work compiled, in as many graphs as it takes and as one graph?"""

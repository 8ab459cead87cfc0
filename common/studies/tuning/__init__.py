"""Study: which backend computes a graph, or a model, the fastest?"""

"""The backend that uses for each graph, or for the whole model, what was decided before.

It measures nothing. May import everything else of `dynamo`, and `results`.
"""

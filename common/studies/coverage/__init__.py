"""Study: what share of a model does Dynamo capture, and what is not captured where?"""

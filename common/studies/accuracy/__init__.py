"""Study: does each backend compute what eager computes?"""

"""Study: how often is measuring wrong on this machine?"""

"""Study: how does what was compiled for several sizes compare, at each, with eager?"""

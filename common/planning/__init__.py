"""From what was asked for to a plan: which cases, measured how, at what cost.

May import `interfaces`, `machine` and `results`. Never imports torch.
"""

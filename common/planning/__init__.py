"""From what was asked for to a plan: which cases, measured how, at what cost.

May import `studies`, `machine` and `interfaces`. Never imports torch.
"""

"""From a plan to records: the loop over cases, supervised processes, and the worker within them.

May import `studies` and what these may import. Only the worker and the fork server, which run in
processes of their own, ever import torch.
"""

"""What surrounds a measurement: hardware, software, allocator, threads, background load.

May import `results` alone. Never imports torch.
"""

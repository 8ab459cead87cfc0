"""What surrounds a measurement: hardware, software, allocator, threads, background load.

May import `dynamo.processor` and `results` alone. Never imports torch.
"""

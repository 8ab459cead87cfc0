"""What rooms and processes hand to each other: options and requests, models, jobs, findings.

May import `registry`, `errors`, `dynamo` and `results` alone.
"""

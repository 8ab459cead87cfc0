"""What rooms and processes hand to each other: models, jobs, findings, failures as outcomes.

May import `dynamo` and `results` alone.
"""

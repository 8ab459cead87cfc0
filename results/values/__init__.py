"""What was asked for and what came back, as frozen values that go to JSON and back.

May import nothing else of the project.
"""

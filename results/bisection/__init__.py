"""Which of many points, such as commits, made a model worse: what to measure next, what it says.

Pure functions; what is measured, and how points are switched, `common/command_line/bisect` does.
"""

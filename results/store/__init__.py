"""What is kept on disk: run directories, and tables of expected results.

May import `values`.
"""

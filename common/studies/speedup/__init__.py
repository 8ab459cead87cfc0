"""Study: how fast is each backend beside eager, what does compiling cost, and how much memory?"""

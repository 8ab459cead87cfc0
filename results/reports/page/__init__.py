"""The page: one HTML file that holds runs, what is said of them, and all it needs to show them.

`values` says what is in it, as JSON; `assets` shows that, in the browser. Nothing is computed there
but order and place.
"""

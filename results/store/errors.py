"""What goes wrong with the files of runs. Apart from the store, so that naming it costs nothing."""


class StoreError(Exception):
    """A run directory that can't be used; says which file, why, and what to do."""

"""What goes wrong with the files of runs. Apart from the store, so that naming it costs nothing."""


class StoreError(Exception):
    """A run directory that can't be used; says which file, why, and what to do."""


class BlockedError(StoreError):
    """A run that can't be gone on with as it is: it is damaged, or another process writes to it."""


class FormatError(BlockedError):
    """A run of a format that this version doesn't read, and another one does."""

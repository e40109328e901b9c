"""How much memory a search may take where nobody says: apart, since commands that explore nothing do not need it."""

from __future__ import annotations

import psutil


def free_memory(share: float) -> int:
    """A share of the memory that is free now, in bytes."""
    return int(share * psutil.virtual_memory().available)

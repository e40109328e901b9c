"""The default memory limit of a search, in a separate module: commands without a search need not import psutil."""

from __future__ import annotations

import psutil


def free_memory(share: float) -> int:
    """A share of the available memory, in bytes."""
    return int(share * psutil.virtual_memory().available)

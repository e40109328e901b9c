"""What happens to output that nobody reads to its end: `python -m checker run ... | head`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unread_output_discarded() -> Iterator[None]:
    """Whoever read the output may have seen enough of it: then what is left goes nowhere, also at the process's end."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

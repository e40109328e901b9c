"""Runs a node whose disk fails while a file is there: `failing_disk.py FUNCTION ERRNO FILE ARGUMENT...`.

FUNCTION is one of the calls that write; the arguments are those of `python -m refimpl`.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from refimpl.__main__ import main
from refimpl.disk import epochs

OWNERS: dict[str, Any] = {"pwrite": os, "fdatasync": os, "fsync": os, "replace_file": epochs}
"""Where the node takes each call from; `replace_file` is how the epochs are written."""


def failing(real: Callable[..., Any], number: int, while_there: Path) -> Callable[..., Any]:
    """The same call, but with this error while the file is there."""

    def call(*arguments: Any) -> Any:
        if while_there.exists():
            raise OSError(number, os.strerror(number))
        return real(*arguments)

    return call


def run(function: str, number: str, file: str, arguments: Sequence[str]) -> int:
    owner = OWNERS[function]
    setattr(owner, function, failing(getattr(owner, function), int(number), Path(file)))
    return main(arguments)


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:4], sys.argv[4:]))

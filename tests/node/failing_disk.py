"""Run a node whose disk fails while a file exists: `failing_disk.py FUNCTION ERRNO FILE ARGUMENT...`.

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
"""The module whose attribute the node calls; `replace_file` writes the epochs."""


def failing(real: Callable[..., Any], number: int, while_there: Path) -> Callable[..., Any]:
    """Return the same function, which raises this error while the file exists."""

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

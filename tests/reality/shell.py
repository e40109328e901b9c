"""Runs a printed command as an operator does: in bash, with `nc` on the PATH."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

NETCAT = """#!/bin/bash
exec 3<>"/dev/tcp/$1/$2" || exit 1
cat >&3
timeout 5 cat <&3
"""
"""`nc HOST PORT`, since a machine may lack the program."""


@contextlib.contextmanager
def shell(command: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs in this folder, and its programs; those that still run at the end are killed."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    netcat = programs / "nc"
    netcat.write_text(NETCAT, encoding="ascii")
    netcat.chmod(0o755)
    running = subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": f"{programs}:{os.environ.get('PATH', '')}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()

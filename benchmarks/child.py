"""Run one command alone and report its wall clock and its peak resident size.

A small launcher (this file, run as a script) starts the command, and not the caller. On Linux the peak of a new program
includes the memory of its process before `exec`, which is the size of the parent. The memory of a caller that has just
searched millions of states would be counted. The launcher's own size, about ten MiB, is therefore the least peak that
can be reported.

Rules: the launcher imports nothing outside the standard library, runs one command, and prints one line of JSON; the
output of the command is redirected to a file, so that no pipe can fill up and stall it.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

# ru_maxrss is in KiB on Linux and in bytes on macOS.
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Usage:
    """The resources of a command: its exit code (negative: the signal that ended it), seconds, bytes."""

    exit_code: int
    wall_seconds: float
    peak_bytes: int


def run_alone(command: list[str], output: Path, directory: Path) -> Usage:
    """Run `command` in `directory` with standard output and errors redirected to `output`; wait for its end.

    `command[0]` is a path. A command that cannot be started ends with exit code 127.
    """
    launcher = [sys.executable, "-I", "-S", __file__, str(output), *command]
    process = subprocess.run(launcher, cwd=directory, stdout=subprocess.PIPE, text=True, check=True)
    return Usage(**json.loads(process.stdout))


def launch(output: str, command: list[str]) -> Usage:
    """Start `command` and wait for it, in the launcher's process."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    redirect = [(os.POSIX_SPAWN_OPEN, 1, output, flags, 0o644), (os.POSIX_SPAWN_DUP2, 1, 2)]
    begin = time.perf_counter()
    try:
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=redirect)
    except OSError as error:
        Path(output).write_text(f"{command[0]}: {error.strerror}\n", encoding="utf-8")
        return Usage(exit_code=127, wall_seconds=0.0, peak_bytes=0)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - begin
    return Usage(os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss * MAXRSS_UNIT)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(vars(launch(sys.argv[1], sys.argv[2:]))))

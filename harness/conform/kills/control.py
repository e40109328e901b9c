"""How servers are killed and started again: by commands of the user, or as processes of this program.

Rules of this module:

- A command is run by the shell, for one server each time. `{server}` is the number of the server, from 1 in the order
  of the addresses; `{host}` and `{port}` are its address.
- A command that fails, or does not end in time, is an error. A command that starts a server must leave it in the
  background.
"""

import subprocess
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from harness.processes import Place, ServerError, address_of

SECONDS = 120.0
"""The bound of a command."""


class ServerControl(Protocol):
    """Something that kills and starts servers by their numbers, from 1; an `Ensemble` does."""

    def kill(self, number: int, /) -> None:
        """End a server at once, as a crash does. Raises ServerError."""

    def start(self, number: int, /) -> None:
        """Start a server that was killed. Raises ServerError."""


class ShellCommands(NamedTuple):
    """Commands of the user; `kill_command` may be None where only starts are needed."""

    places: Sequence[Place]
    kill_command: str | None
    start_command: str

    def kill(self, number: int) -> None:
        """Run the command that kills a server."""
        if self.kill_command is None:
            raise ServerError("no command kills a server; write --kill COMMAND")
        self._run("--kill", self.kill_command, number)

    def start(self, number: int) -> None:
        """Run the command that starts a server."""
        self._run("--restart", self.start_command, number)

    def _run(self, option: str, command: str, number: int) -> None:
        host, port = address_of(self.places[number - 1])
        for name, value in (("{server}", number), ("{host}", host), ("{port}", port)):
            command = command.replace(name, str(value))
        try:
            # Files and not pipes: a server that the command leaves behind would keep a pipe open.
            ended = subprocess.run(
                ["sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ServerError(
                f"{option}: {command!r} did not end within {SECONDS:g} s; leave a server in the background"
            ) from None
        if ended.returncode:
            raise ServerError(f"{option}: {command!r} ended with {ended.returncode}; run it by hand to see its message")

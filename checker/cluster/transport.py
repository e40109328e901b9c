"""The connection between the driver of a search and its parts.

`call` starts a method of a part and returns immediately; `get` waits for the results. A result may be passed to the
call of another part, and goes there directly. The calls of a part are carried out in the order in which they were
started. `LocalTransport` keeps all parts in this process, for tests and for one part.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from checker.cluster.part.search_part import SearchPart

Ref = Any
"""The result of a call, which may not exist yet."""


class PartLostError(Exception):
    """The process or the machine of a part is gone."""


class Transport(Protocol):
    """The calls of the driver."""

    parts: int

    @property
    def description(self) -> str:
        """The machines, in a few words for the notes of the result."""

    def call(self, part: int, method: str, *arguments: Any, returns: int = 1) -> list[Ref]:
        """Start a method of a part; return a reference for each of its results."""

    def get(self, refs: Sequence[Ref]) -> list[Any]:
        """Wait for results. Raises PartLostError, and the exceptions of the methods."""

    def replace_lost(self) -> list[int]:
        """Start each lost part anew, without data; return the numbers of these parts. Raises ModelError."""

    def machines(self) -> list[str]:
        """The name of the machine of each part."""

    def close(self) -> None:
        """End all parts."""


class _Result:
    def __init__(self, value: Any = None, error: BaseException | None = None) -> None:
        self.value, self.error = value, error


class LocalTransport:
    """All parts in this process; each call is carried out at once."""

    def __init__(self, make: Callable[[int], SearchPart], parts: int) -> None:
        self._make, self.parts = make, parts
        self._parts: list[SearchPart | None] = [make(number) for number in range(parts)]

    @property
    def description(self) -> str:
        """This process."""
        return "one process"

    def call(self, part: int, method: str, *arguments: Any, returns: int = 1) -> list[Ref]:
        """Carry out a method of a part."""
        error = next(
            (argument.error for argument in arguments if isinstance(argument, _Result) and argument.error), None
        )
        target = self._parts[part]
        if target is None:
            error = PartLostError(f"part {part} is gone")
        if error is None and target is not None:
            values = [argument.value if isinstance(argument, _Result) else argument for argument in arguments]
            try:
                found = getattr(target, method)(*values)
                return [_Result(found)] if returns == 1 else [_Result(each) for each in found]
            except Exception as raised:
                error = raised
        return [_Result(error=error)] * returns

    def get(self, refs: Sequence[Ref]) -> list[Any]:
        """The results of calls."""
        for ref in refs:
            if ref.error is not None:
                raise ref.error
        return [ref.value for ref in refs]

    def lose(self, part: int) -> None:
        """Lose a part with all that it has in memory."""
        lost = self._parts[part]
        if lost is not None:
            lost.close()
        self._parts[part] = None

    def replace_lost(self) -> list[int]:
        """Start each lost part anew."""
        lost = [number for number, part in enumerate(self._parts) if part is None]
        for number in lost:
            self._parts[number] = self._make(number)
        return lost

    def machines(self) -> list[str]:
        """This machine, for each part."""
        return ["this machine"] * self.parts

    def close(self) -> None:
        """Delete the temporary files of all parts."""
        for part in self._parts:
            if part is not None:
                part.close()

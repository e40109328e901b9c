"""Delta debugging of scripts: the smallest script, as far as the search goes, that still differs.

Rules of this module:

- Only parts are removed, and their order stays: first large pieces of the script, then single commands, at last single
  operations of a multi. The result is 1-minimal unless the bound on the number of attempts ends the search.
- `differs` runs a candidate on both sides, each time below a fresh root, and decides.

Source: A. Zeller and R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002 (ddmin).
"""

from collections.abc import Callable, Iterator

import msgspec

from harness import commands as c

ATTEMPTS = 200


def minimised(script: c.Script, differs: Callable[[c.Script], bool], attempts: int = ATTEMPTS) -> c.Script:
    """Drop commands while the script differs; `script` itself must differ."""
    budget = iter(range(attempts))

    def still(candidate: c.Script) -> bool:
        return next(budget, None) is not None and differs(candidate)

    smaller = _without_commands(script, still)
    while (found := next((each for each in _smaller_multis(smaller) if still(each)), None)) is not None:
        smaller = found
    return smaller


def _without_commands(script: c.Script, still: Callable[[c.Script], bool]) -> c.Script:
    size = len(script) // 2
    while size >= 1:
        place, dropped = 0, False
        while place < len(script):
            candidate = script[:place] + script[place + size :]
            if candidate and still(candidate):
                script, dropped = candidate, True
            else:
                place += size
        if not (size == 1 and dropped):
            size //= 2
    return script


def _smaller_multis(script: c.Script) -> Iterator[c.Script]:
    """The scripts with one operation less in one multi or multiRead."""
    for number, command in enumerate(script):
        if isinstance(command, c.Multi | c.MultiRead):
            for place in range(len(command.parts)):
                parts = command.parts[:place] + command.parts[place + 1 :]
                yield (*script[:number], msgspec.structs.replace(command, parts=parts), *script[number + 1 :])

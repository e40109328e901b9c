"""Scripts of commands at two ensembles, and the first difference of their records."""

from collections.abc import Sequence

from harness import commands as c
from harness.interpreter import Interpreter, Seen
from harness.processes import Place


def run_script(places: Sequence[Place], root: str, sessions: int, script: c.Script) -> list[Seen]:
    """Execute a script with this number of sessions, end the sessions, and return the records."""
    interpreter = Interpreter(places, root, sessions)
    try:
        return interpreter.run(script)
    finally:
        interpreter.close()


def first_difference(one: Sequence[Seen], other: Sequence[Seen]) -> str | None:
    """Describe the first difference between two runs of a script; None if they agree."""
    for number, (left, right) in enumerate(zip(one, other, strict=True)):
        if left != right:
            return (
                f"command {number}, {left.command}:\n"
                f"  one   {left.outcome}{' (late)' * left.late}\n        events {left.events}\n"
                f"  other {right.outcome}{' (late)' * right.late}\n        events {right.events}"
            )
    return None

"""Run a node with steps that fail for a path that contains FAILS: `failing_steps.py ARGUMENT...`."""

import sys
from typing import Any

from refimpl import replica
from refimpl.__main__ import main
from refimpl.clients import final_processor

applied, answered = replica.apply, final_processor.read


def apply(view: Any, zxid: int, change: Any) -> Any:
    """Fail as only a defect of the step can."""
    if "FAILS" in getattr(change.record, "path", ""):
        raise ZeroDivisionError(f"the step\nof {change.record.path}")
    return applied(view, zxid, change)


def read(view: Any, record: Any, *rest: Any) -> Any:
    """Fail as only a defect of the step can."""
    if "FAILS" in record.path:
        raise ZeroDivisionError(f"the step\nof {record.path}")
    return answered(view, record, *rest)


if __name__ == "__main__":
    replica.apply, final_processor.read = apply, read
    sys.exit(main(sys.argv[1:]))

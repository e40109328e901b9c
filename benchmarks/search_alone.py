"""One exhaustive search in a separate process, perhaps symmetric; prints one line of JSON."""

import json
import sys
import time

import psutil

from spec.text import required_integer


def main(model_name: str, servers: int, workers: int, kind: str = "in full") -> None:
    """Compile on a small model, then search; raises SystemExit if the space was not exhausted."""
    began = time.monotonic()
    from benchmarks.models import MODELS  # noqa: PLC0415 (loading is part of what goes before the search)
    from checker.engine import search, symmetric_search  # noqa: PLC0415

    explore = symmetric_search.explore if kind == "symmetric" else search.explore
    explore(MODELS[model_name](2), workers=workers)
    model = MODELS[model_name](servers)
    setup_seconds, processor = time.monotonic() - began, time.process_time()
    baseline = psutil.Process().memory_info().rss
    result = explore(model, workers=workers)
    if not result.exhausted:
        raise SystemExit(f"the search ended before its end: {result.stop.value}")
    print(
        json.dumps(
            {
                "states": result.states,
                "transitions": result.transitions,
                "seconds": result.seconds,
                "setup_seconds": setup_seconds,
                "baseline_bytes": baseline,
                "processor": time.process_time() - processor,
                "violations": len(result.violations),
                "python_steps": result.python_steps,
                "python_seconds": result.python_seconds,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], required_integer(sys.argv[2]), required_integer(sys.argv[3]), *sys.argv[4:])

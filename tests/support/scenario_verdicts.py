"""Run shipped scenarios in the order of the arguments until one has another verdict than the expected one.

`python -m tests.support.scenario_verdicts NAME...` exits with 0 if every scenario has its expected verdict. Otherwise
the exit code is 1, and the last line names the scenario and the verdict. A search that reaches the limit `WORK` ends
there, and does not count as another verdict. With `--sizes` the numbers of states and transitions must also match
`tests/conformance/sizes.txt`.

`python -m tests.support.scenario_verdicts --profile` runs all scenarios up to that amount of work. It prints, as JSON,
for each scenario that ends with its verdict the processor time in seconds and the functions of `spec` that it calls.
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType

from checker.engine.model import ModelError
from checker.engine.search import explore
from checker.gallery import page_name
from checker.job import Verdict
from checker.report.verdict import judge
from checker.scenario import bundled, load

SIZES = Path(__file__).parents[1] / "conformance/sizes.txt"
WORK = 20_000_000
"""The limit of a search: ten seconds of work of the planner's budget."""


def unexpected(path: Path, *, sizes: bool = False) -> str:
    """Return the unexpected verdict, or with `sizes` the unexpected size, or an empty text. Raises TooLargeError."""
    try:
        job = load(path)
        limits = replace(job.limits, work=WORK)
        exploration = explore(job.model, limits, until_witnessed=job.until_witnessed)
    except ModelError as error:
        return f"{path.stem}: {str(error)[:100]}"
    judged = judge(job, exploration, job.actions)
    if judged.verdict is Verdict.INCOMPLETE and job.expected is not Verdict.INCOMPLETE:
        raise TooLargeError
    if not judged.as_expected:
        return f"{path.stem}: {judged.sentence[:100]}"
    size = f"{exploration.states:,} states and {exploration.transitions:,} transitions, to depth {exploration.depth};"
    return f"{path.stem}: {size}" if sizes and not recorded_sizes()[page_name(path)].startswith(size) else ""


def recorded_sizes() -> dict[str, str]:
    """The size of the space of each scenario, and the end of its search, as on its page in the gallery."""
    lines = SIZES.read_text(encoding="utf-8").splitlines()
    return {name: size for name, _, size in (line.partition(": ") for line in lines)}


class TooLargeError(Exception):
    """The search did not end within `WORK`."""


def run(names: list[str], *, sizes: bool) -> int:
    """Run the scenarios with these names in this order, and return the exit code."""
    paths = {path.stem: path for path in bundled()}
    for name in names:
        try:
            why = unexpected(paths[name], sizes=sizes)
        except TooLargeError:
            continue
        if why:
            print(why)
            return 1
    return 0


def profile() -> dict[str, tuple[float, list[str]]]:
    """Return, for each scenario that ends within the limit, its processor time and the functions of `spec` that it
    calls.
    """
    found: dict[str, tuple[float, list[str]]] = {}
    for path in bundled():
        called: dict[int, CodeType] = {}  # by identity: comparing code objects is slow

        def note(frame: FrameType, event: str, _: object, called: dict[int, CodeType] = called) -> None:
            if event == "call":
                called[id(frame.f_code)] = frame.f_code

        began = time.process_time()
        sys.setprofile(note)
        try:
            if unexpected(path):
                continue
        except TooLargeError:
            continue
        finally:
            sys.setprofile(None)
        functions = {name for code in called.values() if (name := function_name(code))}
        found[path.stem] = (round(time.process_time() - began, 2), sorted(functions))
    return found


def function_name(code: CodeType) -> str:
    """Return the function of `spec` as mutants name it, or an empty text. Comprehensions belong to their function."""
    _, is_spec, path = code.co_filename.rpartition("/spec/")
    return f"spec/{path}: {code.co_qualname.replace('.<locals>', '').partition('.<')[0]}" if is_spec else ""


if __name__ == "__main__":
    if sys.argv[1:] == ["--profile"]:
        print(json.dumps(profile()))
    else:
        sys.exit(run([name for name in sys.argv[1:] if name != "--sizes"], sizes="--sizes" in sys.argv))

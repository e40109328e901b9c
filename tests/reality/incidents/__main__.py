"""`python -m tests.reality.incidents`: incidents provoked on real servers, their folders, and what `diagnose` says.

Exit codes: 0 every incident was named, 1 one was not, 2 a wrong command line or a missing program, 3 the harness
failed.
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from harness import real
from harness.processes import ServerError
from tests.reality.incidents import judge
from tests.reality.incidents.capture import capture
from tests.reality.incidents.judge import Judgement
from tests.reality.incidents.scene import Scene
from tests.reality.incidents.table import INCIDENTS, Incident

MEMORY = Path("/dev/shm")


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.reality.incidents", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="only this incident; repeatable")
    parser.add_argument("--release", help="another release for all of them")
    parser.add_argument("--again", action="store_true", help="judge the folders that are there, and provoke nothing")
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="a folder for each incident goes there")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parsed(arguments)
    known = [incident.name for incident in INCIDENTS]
    if unknown := [name for name in options.only or () if name not in known]:
        print(f"--only {unknown[0]}: the incidents are {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [incident for incident in INCIDENTS if incident.name in (options.only or known)]
    for release in sorted({options.release or incident.release for incident in chosen}):
        if reason := real.available(release):
            print(reason, file=sys.stderr)
            return 2
    judges = not (reason := judge.available())
    if reason:
        print(reason, file=sys.stderr)
    results = [_carried_out(incident, options, judges) for incident in chosen]
    judgements = [result for result in results if isinstance(result, Judgement)]
    named = sum(judgement.named for judgement in judgements)
    unsafe = sum(bool(judgement.unsafe) for judgement in judgements)
    if judges:
        print(f"{len(judgements)} incidents: {named} named, {unsafe} with unsafe advice")
    if None in results:
        return 3
    return int(named < len(judgements) or unsafe > 0)


def _carried_out(incident: Incident, options: argparse.Namespace, judges: bool) -> Judgement | bool | None:
    """Provoke an incident, write its folder, and judge; None if the harness failed."""
    home = Path(tempfile.mkdtemp(prefix="quorate-incident-", dir=MEMORY if MEMORY.is_dir() else None))
    scene = Scene(home / "scene", options.release or incident.release)
    folder = options.to / incident.name
    try:
        if not options.again:
            _provoke(incident, scene, folder)
        if not judges:
            return True
        if not folder.is_dir():
            print(f"{incident.name}: there is no folder {folder}", file=sys.stderr)
            return None
        scene.quiet()
        judgement = judge.judge(folder, scene.servers, home, frozenset(scene.acknowledged))
        (folder / judge.JUDGEMENT).write_text(
            json.dumps(asdict(judgement), indent=1, default=sorted) + "\n", encoding="utf-8"
        )
        print(f"  {judge.row(judgement)}", flush=True)
    except (ServerError, OSError, ValueError) as error:
        print(f"{incident.name} ({scene.release}): the harness failed: {error}", flush=True)
        return None
    finally:
        scene.close()
        shutil.rmtree(home, ignore_errors=True)
    return judgement


def _provoke(incident: Incident, scene: Scene, folder: Path) -> None:
    """Provoke an incident, and write its folder; print a line."""
    began = time.monotonic()
    truth = incident.provoke(scene)
    record = capture(scene, truth, incident.name, folder, scene.addresses)
    roles = ", ".join(f"{sid} {role or 'does not serve'}" for sid, role in record["roles"].items())
    lacking = {sid: len(paths) for sid, paths in record["lacking"].items() if paths}
    seconds = time.monotonic() - began
    print(f"{incident.name} ({scene.release}): {roles}; lacking: {lacking or 'nothing'} ({seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers end with the command
    sys.exit(main(sys.argv[1:]))

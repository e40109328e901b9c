"""`python -m tests.reality.disasters`: simulated disasters from seeds, and some of them rebuilt on real servers.

Each seed makes a run of a model of Zab's disks, writes the disks as files, and loses, cuts or flips some. The bound of
`recover` must cover all writes that the model knows as acknowledged, and be the smallest possible (by enumeration).
With `--real N` the first N disasters whose answer needs no choice are written as new directories, and real 3.9.5
servers must serve exactly the tree of the answer. Exit codes: 0, 1 a bound is wrong or another tree is served.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from kazoo.client import KazooClient

from checker.recover.evidence import RecoverError
from checker.recover.rebuild import written
from checker.recover.recovery import Recovery
from checker.recover.report import data_of
from harness.ensemble import Ensemble
from harness.processes import srvr
from harness.releases import MAVEN
from spec.text import between
from spec.tree.paths import ROOT, below
from tests.support.disasters import disaster, recovered, verdict

OWN = "/zookeeper"


def served_tree(client: KazooClient, path: str = ROOT) -> dict[str, tuple[bytes, int, int]]:
    """The znodes of a server below a path, with data, czxid and mzxid, without its own."""
    data, stat = client.get(path)
    tree = {path: (data or b"", stat.czxid, stat.mzxid)}
    for name in client.get_children(path):
        child = below(path, name)
        if child != OWN:
            tree |= served_tree(client, child)
    return tree


def rebuilt(answer: Recovery, home: Path) -> str:
    """Start real servers on the new directories; return what differs, empty if nothing does."""
    directories = written(answer, home / "new")
    znodes = ((path, znode) for path, znode in answer.tree.znodes() if not path.startswith(OWN))
    expected = {path: (znode.data or b"", znode.czxid, znode.mzxid) for path, znode in znodes}
    with Ensemble(["real"] * len(directories), home / "servers", release=MAVEN[-1]) as ensemble:
        # The model numbers servers from 0, the harness from 1.
        for sid, directory in zip(ensemble.sids, directories, strict=True):
            (directory / "version-2").rename(ensemble.data(sid) / "version-2")
        ensemble.start_all()
        for sid in ensemble.sids:
            client = KazooClient(ensemble.address(sid))
            client.start()
            try:
                tree = served_tree(client)
            finally:
                client.stop()
                client.close()
            if tree != expected:
                return f"server {sid} serves {sorted(tree)}, expected {sorted(expected)}"
            counted = data_of(answer, [])["kept"]["node_count"]
            if (count := srvr(ensemble.client_port(sid)).get("Node count")) != str(counted):
                return f"server {sid} has the node count {count}, and the answer {counted}"
        epoch = max(ensemble.applied(sid) or 0 for sid in ensemble.sids) >> 32
    return "" if epoch > answer.epoch else f"the new epoch is {epoch}, and the disks name {answer.epoch}"


def main(arguments: list[str]) -> int:
    """Run the seeds, and print a line for each disagreement and a sum."""
    parser = argparse.ArgumentParser(prog="python -m tests.reality.disasters", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=between(1), default=1000, metavar="N", help="the number of disasters (1000)")
    parser.add_argument("--first", type=between(0), default=0, metavar="N", help="the first seed (0)")
    parser.add_argument("--real", type=between(0), default=0, metavar="N", help="rebuild this many on real servers (0)")
    options = parser.parse_args(arguments)
    began, counts = time.monotonic(), dict.fromkeys(("wrong", "loose", "nothing", "lossy", "open", "real", "differ"), 0)
    for seed in range(options.first, options.first + options.seeds):
        with tempfile.TemporaryDirectory(prefix="quorate-disaster-", dir=_memory()) as name:
            made = disaster(seed, Path(name) / "old")
            try:
                answer = recovered(made, Path(name) / "old")
            except RecoverError:
                counts["nothing"] += 1
                continue
            judgement = verdict(made, answer)
            counts["lossy"] += judgement.lost > 0
            counts["open"] += judgement.open
            for kind, text in (("wrong", judgement.wrong), ("loose", judgement.loose)):
                if text:
                    counts[kind] += 1
                    print(f"seed {seed}: {kind}: {text} (damages: {made.damages})", flush=True)
            majority = len({made.view.weight(sid) for sid in made.view.voters}) == 1
            if counts["real"] < options.real and majority and not answer.needs_choice and len(answer.tree) > 8:
                counts["real"] += 1
                difference = rebuilt(answer, Path(name))
                counts["differ"] += bool(difference)
                print(f"seed {seed}: real servers: {difference or 'the same tree'}", flush=True)
    seconds = time.monotonic() - began
    print(f"{options.seeds} disasters in {seconds:.0f} s: {counts['wrong']} wrong, {counts['loose']} not tight")
    print(f"acknowledged writes lost: {counts['lossy']}; no limit: {counts['open']}; nothing left: {counts['nothing']}")
    print(f"rebuilt on real servers: {counts['real']}; another tree: {counts['differ']}")
    return 1 if counts["wrong"] or counts["differ"] else 0


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The table of the runs: what agreed, by variant and release, and each disagreement."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.reproduce.ends import Outcome
from spec.releases import HISTORIES, RELEASES, Release, is_affected, release_named
from spec.variants import Variant

AGREED, FAILED = Outcome.CONFIRMED.value, Outcome.HARNESS_FAILED.value
SEEN = Path(__file__).with_name("seen.jsonl")
"""The lines of the runs on the page."""
PAGE = Path(__file__).parents[3] / "docs" / "reference-variants-on-releases.md"


def summary(lines: Sequence[dict[str, Any]]) -> str:
    """The table in Markdown, and a list of what did not agree. A run that was executed again counts once."""
    runs = list({(line["variant"], line["release"], line["run"]): line for line in lines}.values())
    releases = [release for release in RELEASES if any(line["release"] == str(release) for line in runs)]
    rows = [f"| variant | {' | '.join(map(str, releases))} |", f"| --- |{' --- |' * len(releases)}"]
    for variant in (variant for variant in Variant if variant in HISTORIES):
        cells = []
        for release in releases:
            own = [line for line in runs if (line["variant"], line["release"]) == (variant.value, str(release))]
            cells.append(_cell(own, has=is_affected(HISTORIES[variant], release)))
        rows.append(f"| {variant.value} | {' | '.join(cells)} |")
    return "\n".join([*rows, "", *_notes(runs)])


def _cell(runs: Sequence[dict[str, Any]], *, has: bool) -> str:
    executed = [line for line in runs if line["run"] and line["outcome"] != FAILED]
    if not executed:
        return "not executed" if runs else "not tried" if has else ""
    agreed = sum(line["outcome"] == AGREED for line in executed)
    seen = sum(line["outcome"] == AGREED and bool(line["shows"]) for line in executed)
    return f"{agreed} of {len(executed)}" + ("" if seen == agreed else f", {seen} shown")


def _notes(runs: Sequence[dict[str, Any]]) -> Iterable[str]:
    """A line for each run that does not agree, and for each reason why nothing was executed."""
    for line in runs:
        if line["run"] and line["outcome"] != AGREED:
            yield f"- {line['variant']} on {line['release']}, run {line['run']}, {line['outcome']}: {line['reason']}"
    reasons: dict[tuple[str, str], list[Release]] = {}
    for line in runs:
        if not line["run"]:
            reasons.setdefault((line["variant"], line["reason"]), []).append(release_named(line["release"]))
    for (variant, reason), releases in reasons.items():
        yield f"- {variant} on {', '.join(map(str, sorted(releases)))}, not executed: {reason}"


def page(lines: Sequence[dict[str, Any]]) -> str:
    """The page of the manual."""
    return f"{_HEAD}\n{summary(lines)}\n\n{_BEHIND}"


_HEAD = """\
# Variants on their releases

A [variant](reference-variants.md) that is a known defect of ZooKeeper must do what its releases do, also where nothing
goes wrong. So runs of each variant are executed on unmodified servers of its releases, step by step (*seen*). A cell
has the runs in which model and servers agreed after every step, of those that were executed. The first command executes
what is new, and the second one writes this page:

    python -m tests.reality.variants --runs 3
    python -m tests.reality.variants --page

- The model is like the release: it has all of its known defects for which the driver has events. A search finds the
  first uses of the variant, random steps from a seed follow, and steps that are not needed are left out.
- A variant has the same runs on all of its releases, if they use it there. Where too few are unlike one another, some
  have the same steps at other servers, or random steps at their ends. Runs of an earlier choice stay: most of those on
  3.8.0 and 3.9.5, some on 3.4.14 and 3.5.10, and those of `trunc-after-snap` except on 3.4.14.
- The variant adds no violation in the run. It changes a step, and in most runs the driver sees that: without the
  variant the model would have other roles, logs, epochs, snapshots, configuration files, packets or ends of
  connections. A cell with *shown* has the number of these runs.
- The driver compares all of that after each step ([how](how-to-reproduce.md)). A run that parts is executed a second
  time, because a busy machine may be too late for a step. Most runs have 5 to 15 steps, and the last one ends them.
- *Not executed* has a reason below the table, and so has a run in which the harness failed, which counts nowhere. *Not
  tried* has none: nobody has run the command for it.
"""
_BEHIND = """\
## What parted, and why

- **ZOOKEEPER-4837.** Before its correction the model let an observer obey a TRUNC that no record of its log files can
  fulfil. The observer of 3.9.5 ended its process in each such run. `trunc-after-snap` has this now, and the run with it
  agrees on 3.8.0 and 3.9.5 (`tests/node/test_reproduce.py`, a slow test). So no release shows the scenario of 4837. In
  the runs of the table the observer has the record that TRUNC cuts the log at, and each release keeps its snapshot.
- **ZOOKEEPER-3642 on 3.4.14.** The leader of the model saves a snapshot that it has in memory alone. The leader of
  3.4.14 takes none (ZOOKEEPER-1558), and its disk stayed empty. Such runs are left out there.
- **TRUNC and SNAP of 3.4.14.** If the next transaction of the leader is of another epoch than the last one of the
  learner, 3.4.14 sends TRUNC, and later releases and the model send SNAP. If the leader has no transaction behind its
  snapshot, it is the other way round. The runs of 4837, and of `trunc-after-snap` on 3.4.14, have other disks now,
  where all of them send the same.
- **A snapshot instead of records.** A learner of 3.8.0 writes transactions that it applies after TRUNC to a snapshot,
  and to no record. They count as logged in the model, and the driver had looked for records alone.
- **A full disk.** A record that cannot be written stays in the memory of `FileTxnLog`, and is written with the next,
  unless its file of the log is new (*source*). So in the runs of ZOOKEEPER-4882 it is the first record of its process.
- **ZOOKEEPER-4712.** The old thread of a server writes a transaction while the server looks for a leader. The model
  let the server vote with it. 3.8.0 votes with the zxid that it had read before, and another server was elected. A
  new leader had a snapshot with the transaction in the model, and 3.8.0 without it. The variant has both now; its
  scenario ends at the same depth, with 50 states less.
- **Elections in one step.** The model lets a server join a leader that serves while the only other follower is still
  being synchronised. The votes of these two have different epochs, and a server of 3.9.5 waits. It also lets two
  servers elect the one with the worse vote, because a third one, which takes no step, votes for it. Such runs are
  left out.
- **A record that is written again.** A TRUNC of `trunc-after-snap` leaves a record in the log, and the leader sends
  it again. A file of the log is named after its first record, and 3.8.0 empties the one of that name before it
  writes. So the record is gone for a moment. The model has no files and keeps it, so such runs are left out.
- **A view.** A learner of a release sees the view of a proposal at once, and the model sees it with NEWLEADER. A server
  without a leader takes a later view before it decides, and the model may decide first. Such runs are left out. The
  discovery of `epoch-of-active-view` is packet by packet.
- **SNAP.** A SNAP in ZOOKEEPER-4646 and 4685 was in the queue of the disk once. 3.8.4 refuted it in 3 of 3 runs, and
  the snapshot is written before the acknowledgement since then (`Learner.syncWithLeader`).

## Variants without runs here

- **ZOOKEEPER-1419** was fixed in 3.4.4, and 3.4.3 can be downloaded from Maven Central. Two servers with the log
  [1:1 .. 1:5] and the epochs 2 and 1 had no leader after a minute in 2 of 3 runs on 3.4.3, and one after 117
  notifications in the third. With equal epochs 3.4.3 had a leader after 9 s. With the epochs 2 and 1 3.4.14 had one
  after 6 to 10 s in 3 of 3 runs (*seen*).
- **ZOOKEEPER-1514** was fixed in 3.4.4 too. Its run needs a vote between two others, and rests on its issue (*source*).
- **ZOOKEEPER-2845** was fixed in 3.4.12, 3.5.4 and 3.6.0, and **ZOOKEEPER-2959** in 3.4.13, 3.5.4 and 3.6.0. No release
  that is started here has them, so both rest on the code (*source*).
- **A restore.** A schedule made by hand is executed on real servers ([the findings](findings/README.md)).
"""

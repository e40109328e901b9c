"""Recordings of real servers, compared with the specification: `python -m checker validate FILE`.

Real 3.9.5 servers made the recordings: one of a healthy ensemble with two kills, and one for each defect that
`python -m harness reproduce` has provoked. The expected verdicts come from these servers. The mutants change one thing
in the healthy recording; each is a step that ZooKeeper's protocol does not have, and must be found where it was made.
"""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from checker.cli.main import main
from checker.job import Verdict
from checker.validate.journals import JournalError
from checker.validate.recording import RecordingValidation, validate_recording
from spec.variants import Variant

RECORDINGS = Path(__file__).parents[2] / "golden" / "recordings"
HEALTHY = RECORDINGS / "healthy-3.9.5.jsonl"
Lines = list[dict[str, Any]]


def lines_of(file: Path) -> Lines:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def judged(lines: Lines, directory: Path) -> RecordingValidation:
    file = directory / "recording.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return validate_recording(file)


def place(lines: Lines, nth: int = 0, **fields: Any) -> int:
    """The place of the nth line with these fields; a negative number counts from the end."""
    found = [at for at, line in enumerate(lines) if all(line.get(name) == value for name, value in fields.items())]
    return found[nth]


def test_a_healthy_ensemble_fits() -> None:
    found = validate_recording(HEALTHY)
    assert found.verdict is Verdict.PASSED, found.finding
    lines = lines_of(HEALTHY)
    assert found.counts.packets == sum(line.get("e") == "packet" for line in lines)
    assert found.counts.disks == sum(line.get("e") in ("start", "kill") for line in lines)
    zxids = {line["zxid"] for line in lines if line.get("type") == "COMMIT"}
    assert found.committed == len(zxids) > 30


@pytest.mark.parametrize(
    ("name", "sid", "what"),
    [
        ("acks-survive-truncation", 3, "COMMIT 2:1"),
        ("sync-from-applied", 3, "TRUNC 1:1"),
        ("trunc-after-snap", 3, "the log has 2:1"),
    ],
)
def test_a_provoked_defect_is_found_and_explained(name: str, sid: int, what: str) -> None:
    found = validate_recording(RECORDINGS / f"{name}-3.9.5.jsonl")
    assert found.finding is not None
    assert (found.finding.sid, found.explained[0].defects) == (sid, (Variant(name),))
    assert what in found.finding.clause
    assert all(each.defects for each in found.explained)


def test_the_lost_write_is_a_consequence_of_its_defect() -> None:
    found = validate_recording(RECORDINGS / "acks-survive-truncation-3.9.5.jsonl")
    assert [each.sid for each in found.losses] == [2, 1, 2, 3]  # the leader without it, then every server at the end
    assert "its history lacks 2:1" in found.losses[0].clause
    assert all("/write-1" in each.clause for each in found.losses[1:])


# Mutants: each changes the lines, and returns the place where it must be found.


def drop_both_acks(lines: Lines) -> int:
    """No follower has acknowledged a committed transaction, and the leader alone cannot commit."""
    zxid = lines[place(lines, 6, type="COMMIT")]["zxid"]
    lines[:] = [line for line in lines if not (line.get("type") == "ACK" and line.get("zxid") == zxid)]
    return place(lines, type="COMMIT", zxid=zxid)


def swap_commits(lines: Lines) -> int:
    """Two COMMITs of a connection in the other order."""
    first = place(lines, 4, type="COMMIT")
    second = next(at for at in range(first + 1, len(lines)) if lines[at].get("type") == "COMMIT"
                  and lines[at]["c"] == lines[first]["c"])  # fmt: skip
    lines[first]["zxid"], lines[second]["zxid"] = lines[second]["zxid"], lines[first]["zxid"]
    return first


def change_zxid(lines: Lines) -> int:
    """A proposal with a zxid that leaves a gap."""
    at = place(lines, 5, type="PROPOSAL")
    epoch, counter = lines[at]["zxid"].split(":")
    lines[at]["zxid"] = f"{epoch}:{int(counter) + 1}"
    return at


def change_content(lines: Lines) -> int:
    """Another transaction under the same zxid on the second connection."""
    first = place(lines, 4, type="PROPOSAL")
    at = next(at for at in range(first + 1, len(lines)) if lines[at].get("zxid") == lines[first]["zxid"]
              and lines[at].get("type") == "PROPOSAL")  # fmt: skip
    lines[at]["digest"] = "00000000"
    return at


def commit_twice(lines: Lines) -> int:
    """A second COMMIT of the same transaction."""
    at = place(lines, 5, type="COMMIT")
    lines.insert(at + 1, dict(lines[at]))
    return at + 1


def commit_early(lines: Lines) -> int:
    """A COMMIT right after its proposal, before any ACK; the other servers' disks cannot have it yet."""
    at = place(lines, 7, type="COMMIT")
    commit = lines.pop(at)
    proposal = place(lines, type="PROPOSAL", zxid=commit["zxid"], c=commit["c"])
    lines.insert(proposal + 1, {**commit, "t": lines[proposal]["t"]})
    return proposal + 1


def skip_proposal(lines: Lines) -> int:
    """A proposal that one follower never gets: its next packet there, or the follower's ACK, does not fit."""
    at = place(lines, 5, type="PROPOSAL")
    connection = lines[at]["c"]
    del lines[at]
    return next(n for n in range(at, len(lines)) if lines[n].get("c") == connection and lines[n]["type"] != "REQUEST")


def acknowledge_unknown(lines: Lines) -> int:
    """An ACK of a transaction that was not proposed."""
    at = place(lines, 8, type="ACK")
    epoch, counter = lines[at]["zxid"].split(":")
    lines[at]["zxid"] = f"{epoch}:{int(counter) + 50}"
    return at


def lose_record(lines: Lines) -> int:
    """A killed server's log lacks a transaction that the server has acknowledged."""
    at = place(lines, e="kill")
    del lines[at]["disk"]["log"][2]
    return at


def keep_extra_record(lines: Lines) -> int:
    """A killed server's log ends with a transaction without a proposal."""
    at = place(lines, e="kill")
    lines[at]["disk"]["log"].append("1:900 00000000")
    return at


def forget_epoch(lines: Lines) -> int:
    """A restarted server reports an acceptedEpoch that it has left behind."""
    at = place(lines, -1, type="FOLLOWERINFO")
    lines[at]["epoch"] -= 1
    return at


def lie_about_history(lines: Lines) -> int:
    """ACKEPOCH with a last zxid that the log does not have."""
    at = place(lines, -1, type="ACKEPOCH")
    epoch, counter = lines[at]["zxid"].split(":")
    lines[at]["zxid"] = f"{epoch}:{int(counter) - 1}" if int(counter) > 1 else f"{epoch}:{int(counter) + 1}"
    return at


def repeat_epoch(lines: Lines) -> int:
    """A leader proposes an epoch that was established before."""
    at = place(lines, -1, type="LEADERINFO")
    lines[at]["epoch"] -= 1
    return at


def truncate_committed(lines: Lines) -> int:
    """A TRUNC where a DIFF is due."""
    at = place(lines, 2, type="DIFF")
    accepted = next(
        line for line in reversed(lines[:at]) if line.get("type") == "ACKEPOCH" and line["c"] == lines[at]["c"]
    )
    epoch, counter = accepted["zxid"].split(":")
    lines[at].update(type="TRUNC", zxid=f"{epoch}:{int(counter) - 1}")
    return at


def serve_early(lines: Lines) -> int:
    """UPTODATE before any ACK of NEWLEADER."""
    at = place(lines, type="UPTODATE")
    uptodate = lines.pop(at)
    first = place(lines, type="ACK")
    lines.insert(first, {**uptodate, "t": lines[first - 1]["t"]})
    return first


def announce_early(lines: Lines) -> int:
    """NEWLEADER before the transactions that the follower lacks."""
    pairs = enumerate(pairwise(lines), start=1)
    behind_commit = (
        n
        for n, (one, two) in pairs
        if (one.get("type"), two.get("type")) == ("COMMIT", "NEWLEADER") and one["c"] == two["c"]
    )
    at = next(behind_commit)
    connection = lines[at]["c"]
    start = next(n for n in range(at, 0, -1) if lines[n].get("type") == "DIFF" and lines[n]["c"] == connection)
    lines.insert(start + 1, {**lines.pop(at), "t": lines[start]["t"]})
    return start + 1


def lose_write(lines: Lines) -> int:
    """A server that lacks an acknowledged write in the end."""
    at = place(lines, -1, e="tree")
    lines[at]["absent"] = [lines[place(lines, e="reply")]["path"]]
    return at


def reply_early(lines: Lines) -> int:
    """A client's reply before its transaction was proposed."""
    at = place(lines, 5, e="reply")
    reply = lines.pop(at)
    proposal = place(lines, type="PROPOSAL", zxid=reply["zxid"])
    lines.insert(proposal, {**reply, "t": lines[proposal - 1]["t"]})
    return proposal


def reply_to_two(lines: Lines) -> int:
    """Two writes are acknowledged as one transaction."""
    first, at = place(lines, 4, e="reply"), place(lines, 5, e="reply")
    lines[at]["zxid"] = lines[first]["zxid"]
    return at


def reply_of_the_next_epoch(lines: Lines) -> int:
    """A leader acknowledges a transaction of an epoch that nobody leads yet."""
    at = next(
        at
        for at, line in enumerate(lines)
        if line.get("e") == "reply" and line["zxid"].startswith("2:") and line["sid"] == 2
    )
    lines[at]["zxid"] = "3:20"
    return at


def count_an_epoch(lines: Lines) -> int:
    """A NEWLEADER whose zxid has a counter, as the recorder writes it."""
    at = place(lines, 1, type="NEWLEADER")
    lines[at]["counter"] = 1
    return at


MUTANTS: list[Callable[[Lines], int]] = [
    drop_both_acks, swap_commits, change_zxid, change_content, commit_twice, commit_early, skip_proposal,
    acknowledge_unknown, lose_record, keep_extra_record, forget_epoch, lie_about_history, repeat_epoch,
    truncate_committed, serve_early, announce_early, lose_write, reply_early, reply_to_two,
    reply_of_the_next_epoch, count_an_epoch,
]  # fmt: skip


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda each: each.__name__)
def test_a_corruption_is_found_where_it_was_made(mutate: Callable[[Lines], int], tmp_path: Path) -> None:
    lines = lines_of(HEALTHY)
    at = mutate(lines)
    found = judged(lines, tmp_path)
    assert found.finding is not None, "the corruption fits"
    assert found.finding.line == at + 1, found.finding


# Other files.


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda lines: lines.pop(), "it is truncated"),
        (lambda lines: lines[0].update(recording=2), "this program reads format 1"),
        (lambda lines: lines[9].update(e="dance"), "no event is called 'dance'"),
        (lambda lines: lines[9].pop("e"), "no event is called ''"),
        (lambda lines: lines[20].update(t=0.0), "out of order"),
        (lambda lines: lines[place(lines, type="ACK")].update(zxid="one"), "'one' is not a zxid"),
        (lambda lines: lines[place(lines, type="ACK")].update(c=99), "connection 99 has not begun"),
        (lambda lines: lines[place(lines, type="ACK")].update(type="NACK"), "no packet is called 'NACK'"),
        (lambda lines: lines[place(lines, type="ACK")].update(way="left"), "write up or down"),
        (lambda lines: lines.pop(1), "server 1 has not started"),
        (lambda lines: lines.pop(place(lines, e="kill")), r"server \d runs already; its kill line is missing"),
        (lambda lines: lines.pop(place(lines, 3, e="start")), r"server \d does not run; its start line is missing"),
        (lambda lines: lines[place(lines, e="tree")].pop("absent"), "the event tree has no absent"),
        (lambda lines: lines[place(lines, e="tree")].update(abesnt=["/x"]), "unknown field `abesnt`"),
        (lambda lines: lines[place(lines, e="kill")]["disk"].update(logs=[]), "unknown field `logs`"),
        (lambda lines: lines[place(lines, e="reply")].pop("path"), "the event reply has no path"),
        (lambda lines: lines.append({"e": "end", "t": 1.0}), "lines follow the end"),
        (lambda lines: lines[place(lines, e="kill")].pop("disk"), "the event kill has no disk"),
        (lambda lines: lines.insert(30, {"e": "read", "c": 1, "way": "up", "t": lines[29]["t"]}), "is held"),
    ],
)
def test_a_damaged_recording_has_one_clear_error(change: Callable[[Lines], object], what: str, tmp_path: Path) -> None:
    lines = lines_of(HEALTHY)
    change(lines)
    with pytest.raises(JournalError, match=what):
        judged(lines, tmp_path)


def test_half_a_line_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "half"
    file.write_bytes(HEALTHY.read_bytes()[:5000])
    with pytest.raises(JournalError, match="it is damaged"):
        validate_recording(file)


# The command.


def test_the_command_reports_a_recording(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(HEALTHY)]) == 0
    assert capsys.readouterr().out.startswith("passed: ")
    assert main(["validate", str(RECORDINGS / "acks-survive-truncation-3.9.5.jsonl")]) == 12
    report = capsys.readouterr().out
    assert "it cannot send COMMIT 2:1" in report.splitlines()[0]
    assert "explained by acks-survive-truncation" in report


@pytest.mark.parametrize(("began", "shown"), [(1e300, "1e+300 s"), (-1e300, "-1e+300 s"), (1e12, "1000000000")])
def test_a_date_beyond_every_calendar_is_shown_as_its_number(
    began: float, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = lines_of(RECORDINGS / "acks-survive-truncation-3.9.5.jsonl")
    lines[0]["began"] = began
    file = tmp_path / "recording.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert main(["validate", str(file)]) == 12
    assert f"  at     {shown}" in capsys.readouterr().out


def test_the_data_of_a_recording(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--json", str(RECORDINGS / "trunc-after-snap-3.9.5.jsonl")]) == 12
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "violated"
    assert report["misfits"][0]["explained_by"] == ["trunc-after-snap"]
    assert report["release"] == "3.9.5"


def test_a_recording_is_validated_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(HEALTHY), str(HEALTHY)]) == 150
    assert "validate it alone" in capsys.readouterr().err


def test_a_recording_without_a_commit_says_nothing(tmp_path: Path) -> None:
    lines = lines_of(HEALTHY)
    found = judged([*lines[:4], lines[-1]], tmp_path)
    assert found.verdict is Verdict.VACUOUS

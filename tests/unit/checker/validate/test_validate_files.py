"""Journals that are damaged, mixed up or cut short, restarts with another disk, and the command."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checker.cli.main import main
from checker.job import Verdict
from checker.validate import JournalError, validate
from checker.validate.replay import Replay
from refimpl.journal import Journal
from spec import server as spec_server
from spec.durable import Durable
from spec.effects import Timer
from spec.election.messages import Fired, Start
from spec.election.state import ElectionRules
from spec.quorum import majority_view
from spec.server import Event, Server
from spec.txn import Txn, make_zxid
from spec.zab.events import ClientWrite, Synced
from spec.zab.state import ZabRules

ALONE = majority_view([1])
RULES, ZAB = ElectionRules(), ZabRules()


class Live:
    """A server that is the whole ensemble, with its journal."""

    def __init__(self, path: Path, durable: Durable = Durable(), sid: int = 1) -> None:
        self.server = Server(sid, majority_view([sid]), durable)
        self.journal = Journal(path, now=lambda: 7.0)
        self.journal.begin(self.server, RULES, ZAB)

    def does(self, *events: Event, flushes: bool = True) -> "Live":
        for event in events:
            done = spec_server.step(self.server, event, RULES, ZAB)
            assert done is not None
            self.server = done.state
            self.journal.handled(event, done.effects, done.state.durable)
            if flushes:
                self.journal.flush()
        self.journal.flush()
        return self

    def boots(self) -> "Live":
        return self.does(Start(self.server.view), Fired(Timer.FINALIZE_WAIT))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def written(path: Path) -> Live:
    return Live(path).boots().does(ClientWrite("a"), Synced(), ClientWrite("b"))


def edited(path: Path, line: int, change: Callable[[Any], None]) -> None:
    lines = path.read_text().splitlines()
    record = json.loads(lines[line - 1])
    change(record)
    lines[line - 1] = json.dumps(record)
    path.write_text("".join(f"{each}\n" for each in lines))


def error_of(*paths: Path) -> str:
    with pytest.raises(JournalError) as raised:
        validate(paths)
    return str(raised.value)


# -- Files -------------------------------------------------------------------------------------------------------


def test_an_empty_file_is_refused(path: Path) -> None:
    path.touch()
    assert error_of(path) == f"{path}: it has no records; a journal begins with a start record"


def test_a_file_that_is_not_there_is_refused(path: Path) -> None:
    assert "it cannot be read (No such file or directory)" in error_of(path)


def test_a_journal_whose_beginning_is_lost_is_refused(path: Path) -> None:
    written(path)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    assert f"{path}:1: not a journal: the first line must be a start record" in error_of(path)


def test_another_format_is_refused(path: Path) -> None:
    written(path)
    edited(path, 1, lambda record: record.update(journal=1))
    assert error_of(path) == f"{path}:1: the format is 1; this program reads format 2"


def test_a_line_damaged_in_the_middle_is_named(path: Path) -> None:
    written(path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], lines[2][:20] + "\n", *lines[3:]]))
    assert f"{path}:3: it is damaged" in error_of(path)


def test_two_servers_in_one_file_are_refused(path: Path) -> None:
    written(path)
    Live(path, sid=2)
    assert error_of(path) == f"{path}:7: server 2 starts in the journal of server 1; give each server its own file"


def test_two_journals_of_one_server_are_refused(path: Path, tmp_path: Path) -> None:
    for each in (path, tmp_path / "other"):
        written(each)
    assert f"server 1 has another journal, {path}" in error_of(path, tmp_path / "other")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda record: record.update(e=["Sleep"]), "unknown event 'Sleep'; write one of"),
        (lambda record: record.update(e=["ClientWrite"]), "ClientWrite has 0 fields; it must have 1: value"),
        (lambda record: record.update(e=["ClientWrite", "text"]), "it must be the digest of a value, 16 hexadecimal"),
        (lambda record: record.update(e=["LearnerGone", "2"]), "LearnerGone.learner is '2'; it must be of type int"),
        (lambda record: record.update(e={}), "unknown event '{}'"),
        (lambda record: record.update(e=["Receive", 2, ["Nack", 1]]), "unknown Receive.packet 'Nack'; write one of"),
        (lambda record: record.update(n="4"), "it is damaged (Expected `int`"),
    ],
)
def test_a_word_that_is_none_is_named_with_what_would_be_right(
    path: Path, change: Callable[[Any], None], told: str
) -> None:
    written(path)
    edited(path, 4, change)
    message = error_of(path)
    assert message.startswith(f"{path}:4: ")
    assert told in message


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda record: record["view"].pop("version"), "is not a view (KeyError 'version')"),
        (lambda record: record["view"].update(observers=[1]), "are both voters and observers"),
        (lambda record: record["durable"].pop("txns"), "is not the content of a disk"),
        (lambda record: record["durable"].update(accepted=-1), "acceptedEpoch -1 is less than currentEpoch 0"),
        (lambda record: record.update(rules=None), "are not rules"),
        (lambda record: record.update(sid=None), "names no server"),
    ],
)
def test_a_start_record_that_says_too_little_is_refused(path: Path, change: Callable[[Any], None], told: str) -> None:
    written(path)
    edited(path, 1, change)
    message = error_of(path)
    assert message.startswith(f"{path}:1: ")
    assert told in message


# -- Restarts ----------------------------------------------------------------------------------------------------

FIRST, SECOND = (Txn(make_zxid(1, n), value) for n, value in ((1, "a"), (2, "b")))


def restarted(path: Path, durable: Durable) -> Any:
    """Validate a run whose second write is requested and not reported; the process is killed and finds this disk."""
    written(path)
    Live(path, durable).boots()
    return validate([path])


@pytest.mark.parametrize("log", [(FIRST,), (FIRST, SECOND)], ids=["not on disk", "on disk"])
def test_what_was_asked_for_and_not_reported_may_be_on_disk_or_not(path: Path, log: tuple[Txn, ...]) -> None:
    found = restarted(path, Durable(1, 1, 0, log))
    assert (found.verdict, found.lives, found.notes) == (Verdict.PASSED, 2, [])


@pytest.mark.parametrize(
    ("durable", "difference"),
    [
        (Durable(1, 1, 0, ()), "1:1"),
        (Durable(1, 1, 0, (Txn(FIRST.zxid, "another"),)), "1:1"),
        (Durable(1, 1, 0, (SECOND,)), "1:1"),
        (Durable(1, 1, 0, (FIRST, Txn(SECOND.zxid, "torn"))), "1:2"),
    ],
    ids=["lost", "another value", "without the first", "torn record"],
)
def test_a_disk_without_what_was_durable_is_a_misfit(path: Path, durable: Durable, difference: str) -> None:
    found = restarted(path, durable)
    (misfit,) = found.mismatches
    assert (misfit.line, misfit.clause) == (7, "after the restart the disk does not hold what was durable before")
    assert ("first difference at", difference) in misfit.values


def test_epochs_that_went_back_are_a_misfit(path: Path) -> None:
    found = restarted(path, Durable(0, 0, 0, (FIRST,)))
    assert [(misfit.line, misfit.event) for misfit in found.mismatches] == [(7, "start")]


def test_a_disk_that_holds_more_than_could_be_written_down_is_told(path: Path) -> None:
    third = Txn(make_zxid(1, 3), "c")
    found = restarted(path, Durable(1, 1, 0, (FIRST, SECOND, third)))
    assert found.verdict is Verdict.PASSED
    assert any("the disk held last zxid 1:3" in note for note in found.notes)


def test_what_the_last_turn_asked_of_the_disk_may_not_have_happened(path: Path) -> None:
    """Its records were flushed in one write, and the process was killed before it executed the effects."""
    Live(path).does(Start(ALONE), Fired(Timer.FINALIZE_WAIT), flushes=False)
    Live(path, Durable()).boots()
    assert validate([path]).verdict is Verdict.PASSED


def test_an_epoch_that_never_reached_the_disk_is_established_again_without_a_second_reign(path: Path) -> None:
    """Two lives end in the turn that establishes epoch 1, and a life between them ends before."""
    Live(path).does(Start(ALONE), Fired(Timer.FINALIZE_WAIT), flushes=False)
    Live(path).does(Start(ALONE))
    Live(path).does(Start(ALONE), Fired(Timer.FINALIZE_WAIT), flushes=False)
    Live(path).boots()
    found = validate([path])
    assert (found.verdict, found.lives, found.counts["Leadership"].premise) == (Verdict.PASSED, 4, 0)


def test_an_epoch_that_is_established_again_after_later_turns_violates_leadership(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk has lost the epoch. Restarts are not compared here, so only the invariant can detect it."""
    monkeypatch.setattr(Replay, "_compare", lambda *_: None)
    Live(path).boots().does(ClientWrite("a"))
    Live(path).boots()
    (misfit,) = validate([path]).mismatches
    assert (misfit.line, misfit.invariant) == (7, "Leadership")
    assert misfit.clause == "one leader establishes one epoch twice"


def test_a_life_establishes_an_epoch_at_most_once_also_where_an_earlier_life_was_cut_short(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first life never entered epoch 1, and the second did; the third is a second reign."""
    monkeypatch.setattr(Replay, "_compare", lambda *_: None)
    Live(path).does(Start(ALONE), Fired(Timer.FINALIZE_WAIT), flushes=False)
    Live(path).boots().does(ClientWrite("a"))
    Live(path).boots()
    (misfit,) = validate([path]).mismatches
    assert (misfit.line, misfit.invariant) == (10, "Leadership")


def test_a_restart_reads_the_end_of_its_log_only(path: Path) -> None:
    found = restarted(path, Durable(1, 1, FIRST.zxid, (SECOND,)))
    assert found.verdict is Verdict.PASSED


def test_a_torn_line_before_a_restart_is_told(path: Path) -> None:
    live = written(path)
    path.write_bytes(path.read_bytes()[:-9])
    Live(path, live.server.durable).boots()
    found = validate([path])
    assert (found.verdict, found.notes) == (
        Verdict.PASSED,
        [f"{path}:6: a torn line, where the process of server 1 ended"],
    )


def test_a_log_that_is_forgotten_from_the_front_goes_on(path: Path) -> None:
    """A node keeps only the end of its log; the delivered transactions are still compared."""
    live = written(path).does(Synced())
    short = live.server.durable
    live.server = Server(1, ALONE, Durable(1, 1, 0, short.txns[1:]), live.server.election, live.server.zab)
    live.does(ClientWrite("c"), Synced())
    found = validate([path])
    assert (found.verdict, found.transactions) == (Verdict.PASSED, 3)


# -- The command -------------------------------------------------------------------------------------------------


def test_the_command_reports_and_exits_with_0(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(path)
    assert main(["validate", str(path)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("passed: 6 records fit the specification, and every invariant holds")
    assert "1 (servers 1; 1 lives)" in printed


def test_a_misfit_exits_with_12_and_names_file_line_and_event(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(path)
    edited(path, 5, lambda record: record["f"].pop())
    assert main(["validate", str(path)]) == 12
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith(f"violated: {path}:5: server 1: the node observed more or fewer facts")
    assert '  event  ["Synced"]' in others


def test_a_bad_file_exits_with_150_and_one_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("no journal\n")
    assert main(["validate", str(path)]) == 150
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)


def test_a_journal_of_which_no_invariant_says_anything_is_vacuous(path: Path) -> None:
    Live(path)
    assert main(["validate", str(path)]) == 21


def test_the_report_for_machines_is_one_object(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(path)
    main(["validate", str(path), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert (report["verdict"], report["exit_code"], report["records"], report["misfits"]) == ("passed", 0, 6, [])
    assert report["invariants"]["Integrity"]["premise"] > 0


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("tickTime=2000\nserver.1=a:1:2\n", "a zoo.cfg, which `quorums` reads"),
        ('{"entry":"operation","client":"a"}\n', "a recorded history of clients, which `history` reads"),
        ("{:process 0, :type :invoke, :f :read}\n", "a history in EDN, which `history` reads if its suffix is .edn"),
        ("# a remark\nservers: 3\n", "a scenario, which `run` reads"),
        ("ZKLG\0\0\0\2", "a transaction log of ZooKeeper, which no command reads"),
        ("ZKSN\0\0\0\2", "a snapshot of ZooKeeper, which no command reads"),
        ("PK\3\4", "a packed file, which must be unpacked first"),
        ('{"name": 3}\n', "JSON of another program"),
        ("Dear reader\n", "a text of another kind"),
        ("\x7fELF\0", "a binary file of another program"),
    ],
)
def test_a_file_of_another_kind_is_named_and_not_called_damaged(tmp_path: Path, content: str, kind: str) -> None:
    path = tmp_path / "input"
    path.write_text(content, encoding="latin-1")
    right = "name the journals that nodes write with --journal, or one recording"
    assert error_of(path) == f"{path}: it is {kind}; {right}"

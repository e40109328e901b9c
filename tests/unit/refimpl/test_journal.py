"""The journal of a live server: its records, the time when they reach the system, and the recovery of a torn end."""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from checker.validate import codec
from refimpl.journal import CACHED, Journal
from spec.durable import Durable
from spec.effects import Apply, Effects, Observe, Persist, Send, WriteEpochs
from spec.election.messages import Deliver, Notification
from spec.election.state import ElectionRules
from spec.election.vote import ServerState, Vote
from spec.quorum import Reconfiguration, hierarchical_view, majority_view
from spec.server import Server
from spec.txn import Txn, make_zxid
from spec.variants import Variant
from spec.zab.events import Broadcast, ClientWrite, Delivered, EpochEstablished, LearnerGone, Receive, Synced, Tick
from spec.zab.packets import Ack, Proposal, Snap
from spec.zab.state import Append, TakeSnapshot, ZabRules

VIEW = majority_view([1, 2, 3], [4])
SERVER = Server(1, VIEW, Durable(3, 2, 0, (Txn(make_zxid(2, 1), "a"),)))


def digest(encoded: bytes) -> str:
    return blake2b(encoded, digest_size=8).hexdigest()


def journal_in(folder: Path, **more: Any) -> Journal:
    return Journal(folder / "journal", **{"encode": str.encode, "now": lambda: 5.0, **more})


def records(journal: Journal) -> list[Any]:
    journal.flush()
    return [json.loads(line) for line in journal.path.read_text().splitlines()]


def test_a_start_record_says_who_starts_with_what_and_by_which_rules(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.begin(SERVER, ElectionRules(), ZabRules(variants=frozenset({Variant.NO_TRUNCATION})))

    assert records(journal) == [
        {
            "journal": 2,
            "n": 0,
            "t": 5.0,
            "sid": 1,
            "view": {"voters": [1, 2, 3], "observers": [4], "version": 0},
            "next": None,
            "durable": {"accepted": 3, "current": 2, "snapshot": 0, "txns": [[(2 << 32) + 1, digest(b"a")]]},
            "rules": {"round_limit": None, "variants": [], "outsiders": True},
            "zab": {
                "asynchronous_disk": True,
                "asynchronous_commits": False,
                "variants": ["no-truncation"],
                "hold_commits": False,
                "observers_log_first": False,
                "sees_early": False,
                "first_version": False,
            },
        }
    ]


def test_a_fact_with_groups_fits_the_one_that_was_written(tmp_path: Path) -> None:
    view = hierarchical_view({1: [1], 2: [2, 3]}, {1: 3, 3: 2}, observers=[3], version=make_zxid(1, 1))
    txn = Txn(make_zxid(1, 1), Reconfiguration(view, "a change"))
    journal = Journal(tmp_path / "journal")
    journal.handled(ClientWrite("a"), (Observe(Broadcast(1, 1, txn)),))
    journal.close()
    [said] = json.loads(journal.path.read_text())["f"]
    replayed = Txn(txn.zxid, Reconfiguration(view, said[-1][1][0]))
    assert codec.fits(said, Broadcast(1, 1, replayed))


def test_groups_and_weights_are_written_too(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.begin(Server(1, hierarchical_view({1: [1], 2: [2]}, {1: 3})), ElectionRules(), None)

    view = records(journal)[0]["view"]
    assert (view["groups"], view["weights"], view["silent"]) == ([[1, [1]], [2, [2]]], [[1, 3], [2, 1]], [])


def test_an_event_is_its_name_and_its_fields_in_order(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    heard = Notification(ServerState.LOOKING, Vote(3, 7, 1), 2)
    for event in (Deliver(2, heard), LearnerGone(3), Receive(2, Ack(9)), Synced()):
        journal.handled(event, ())

    assert [record["e"] for record in records(journal)] == [
        ["Deliver", 2, ["Notification", 0, ["Vote", 3, 7, 1], 2, None]],
        ["LearnerGone", 3],
        ["Receive", 2, ["Ack", 9]],
        ["Synced"],
    ]


def test_a_digest_stands_for_a_value_wherever_it_stands(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.handled(ClientWrite("secret"), ())
    journal.handled(Receive(1, Proposal(Txn(5, "secret"))), ())

    assert [record["e"][-1] for record in records(journal)] == [digest(b"secret"), ["Proposal", [5, digest(b"secret")]]]
    assert "secret" not in journal.path.read_text()


def test_a_reconfiguration_has_its_view_beside_the_digest(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    proposal = Proposal(Txn(5, Reconfiguration(majority_view((1, 2), observers=(4,), version=5), "secret")))
    effects: Effects = (Send(2, proposal), Persist(Append(proposal.txn)))
    journal.handled(Receive(1, proposal), effects)

    written = records(journal)[0]
    view = {"voters": [1, 2], "observers": [4], "version": 5}
    assert written["e"] == ["Receive", 1, ["Proposal", [5, [digest(b"secret"), view]]]]
    read = codec.event_of(written["e"])
    assert isinstance(read, Receive) and isinstance(read.packet, Proposal)
    assert read.packet.txn.value == Reconfiguration(proposal.txn.value.view, digest(b"secret"))
    theirs = (Send(2, read.packet), Persist(Append(read.packet.txn)))
    assert written["x"] == codec.digest_of(theirs)


def test_a_snapshot_that_does_not_name_its_transactions_is_written_so(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.handled(Receive(3, Snap(9, None)), ())

    assert records(journal)[0]["e"] == ["Receive", 3, ["Snap", 9, None]]


def test_of_many_transactions_a_fact_says_how_many_the_first_the_last_and_a_digest(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    txns = tuple(Txn(zxid, str(zxid)) for zxid in (7, 8, 9))
    journal.handled(Tick(), (Observe(Delivered(1, 2, txns)), Observe(EpochEstablished(1, 2, ()))))

    whole = b"".join(txn.zxid.to_bytes(8, "big") + digest(str(txn.value).encode()).encode() for txn in txns)
    assert records(journal)[0]["f"] == [["Delivered", 1, 2, [3, 7, 9, digest(whole)]], ["EpochEstablished", 1, 2, [0]]]


def test_the_digest_of_effects_is_that_of_their_words(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    txn = Txn(5, "v")
    effects: Effects = (WriteEpochs(3, 2), Send(2, Proposal(txn)), Persist(Append(txn)), Apply(4))
    journal.handled(Tick(), effects)

    words = (
        f'[["WriteEpochs",3,2],["Send",2,["Proposal",[5,"{digest(b"v")}"]]],'
        f'["Persist",["Append",[5,"{digest(b"v")}"],true]],["Apply",4]]'
    )
    assert records(journal)[0]["x"] == digest(words.encode())


def test_effects_are_the_same_however_much_of_the_log_is_in_memory(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    long, short = (tuple(Txn(zxid, "v") for zxid in range(first, 9)) for first in (1, 7))
    for txns in (long, short):
        journal.handled(Tick(), (Persist(TakeSnapshot(txns, 0)),))

    one, other = records(journal)
    assert one["x"] == other["x"]


def test_records_of_a_life_are_numbered(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    for _ in range(2):
        journal.begin(SERVER, ElectionRules(), None)
        journal.handled(Tick(), ())
        journal.handled(Tick(), ())

    assert [record["n"] for record in records(journal)] == [0, 1, 2, 0, 1, 2]


def test_a_record_says_from_where_on_the_log_is_in_memory_when_that_changes(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.begin(SERVER, ElectionRules(), None)
    longer = SERVER.durable.appended(Txn(make_zxid(2, 2), "b"))
    for durable in (longer, Durable(3, 2, 0, longer.txns[1:]), Durable(3, 2, 0, longer.txns[1:])):
        journal.handled(Tick(), (), durable)

    assert [record.get("m") for record in records(journal)[1:]] == [None, make_zxid(2, 2), None]


# -- The time of writing -----------------------------------------------------------------------------------------


def test_a_record_is_in_the_file_after_the_flush_and_not_before(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.begin(SERVER, ElectionRules(), None)
    journal.handled(Tick(), ())
    before = len(journal.path.read_text().splitlines())
    journal.flush()

    assert (before, len(journal.path.read_text().splitlines())) == (1, 2)


def test_the_first_record_behind_a_flush_is_marked(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.begin(SERVER, ElectionRules(), None)
    for flushed in (False, True, False, False):
        journal.handled(Tick(), ())
        if flushed:
            journal.flush()

    assert [record.get("b", 0) for record in records(journal)] == [0, 1, 0, 1, 0]


def test_a_journal_goes_on_behind_what_is_there(tmp_path: Path) -> None:
    for _ in range(2):
        journal = journal_in(tmp_path)
        journal.begin(SERVER, ElectionRules(), None)
        journal.close()

    assert len(journal.path.read_text().splitlines()) == 2


def test_a_torn_line_stays_a_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b'{"n":1,"t"')
    journal = journal_in(tmp_path)
    journal.begin(SERVER, ElectionRules(), None)
    torn, begun = journal.path.read_text().splitlines()

    assert (torn, json.loads(begun)["journal"]) == ('{"n":1,"t"', 2)


def test_a_value_is_encoded_once_while_it_is_seen_often(tmp_path: Path) -> None:
    encoded: list[str] = []

    def encode(value: str) -> bytes:
        encoded.append(value)
        return value.encode()

    journal, txn = journal_in(tmp_path, encode=encode), Txn(5, "v")
    journal.handled(ClientWrite(txn.value), (Send(2, Proposal(txn)), Send(3, Proposal(txn)), Persist(Append(txn))))

    assert encoded == ["v"]


def test_what_is_remembered_of_values_is_bounded(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    for number in range(200):
        journal.handled(ClientWrite(f"{number:1000000}"), ())
        journal.flush()

    assert len(journal._events._digests._known) * 1_000_000 <= CACHED

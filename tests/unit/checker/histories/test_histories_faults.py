"""A small ZooKeeper made of lists, driven at random, with one fault at a time: the checks of histories find each.

The servers are prefixes of one log, so correct behaviour needs no protocol. Without a fault every history must pass;
with one, the runs in which the fault had an effect must fail.
"""

import random

import msgspec
import pytest

from checker import histories
from checker.histories import FinalZnodes, Leaf, Operation, StaleBound, history_of
from checker.histories.reads import BOUNDED
from checker.histories.reads import CURRENT as SYNCED
from checker.histories.record import Kind

KEYS = ("/a", "/b")
SEEDS = range(25)
STEPS = 900
CLIENTS = 5
SERVERS = (1, 2, 3)
KINDS: tuple[Kind, ...] = ("create", "set", "set", "set", "delete", "get", "get", "sync+get", "sync+get")

Znode = tuple[str, int, int]  # value, mzxid, version


class Client:
    def __init__(self, number: int) -> None:
        self.name = f"c{number}"
        self.session = number
        self.server = SERVERS[number % 3]
        self.seen = 0
        self.asked: Operation | None = None
        self.carried_out: tuple[int, str, Znode | None] | None = None  # zxid, error, present value
        self.floor = 0


class Fake:
    """One log, three servers that have each applied a prefix of it, and the fault of this run."""

    def __init__(self, seed: int, fault: str = "") -> None:
        self.random = random.Random(seed)
        self.fault = fault
        self.harmed = 0
        self.clock = 0.0
        self.epoch = 1
        self.counter = 0
        self.tree: dict[str, Znode] = {}
        self.states: list[tuple[int, dict[str, Znode]]] = [(1 << 32, {})]
        self.applied = dict.fromkeys(SERVERS, 0)
        self.values = 0
        self.record: list[histories.Entry] = []
        self.clients = [Client(number) for number in range(CLIENTS)]

    def strikes(self, fault: str) -> bool:
        return self.fault == fault and self.random.random() < 0.25

    # --- the ensemble

    def log(self) -> int:
        self.counter += 1
        zxid = (self.epoch << 32) + self.counter
        self.states.append((zxid, dict(self.tree)))
        return zxid

    def carry_out(self, asked: Operation) -> tuple[int, str, Znode | None]:
        found = self.tree.get(asked.key)
        zxid = (self.epoch << 32) + self.counter + 1
        if asked.kind == "create":
            error = "NodeExists" if found else ""
            left: Znode | None = (asked.value or "", zxid, 0)
        else:
            error = "" if found else "NoNode"
            if found and asked.condition not in {-1, found[2]}:
                error = "BadVersion"
            left = None if asked.kind == "delete" or not found else (asked.value or "", zxid, found[2] + 1)
        if error:
            return self.log(), error, None
        if self.strikes("lost write") and asked.kind != "delete":
            self.harmed += 1
            return self.log(), "", left
        if left is None:
            del self.tree[asked.key]
        else:
            self.tree[asked.key] = left
        self.log()
        if self.strikes("applied twice") and asked.kind == "set" and left is not None:
            self.harmed += 1
            self.tree[asked.key] = (left[0], zxid + 1, left[2] + 1)
            self.log()
        return zxid, "", left

    def read(self, client: Client, key: str) -> tuple[int, Znode | None]:
        zxid, tree = self.states[self.applied[client.server]]
        found = tree.get(key)
        if found and self.strikes("mixed Stat"):
            self.harmed += 1
            found = (found[0], found[1], found[2] + 1)
        return zxid, found

    # --- the clients

    def invoke(self, client: Client) -> None:
        kind = self.random.choice(KINDS)
        value, condition = None, -1
        if kind in {"create", "set"}:
            self.values += 1
            value = f"v{self.values}"
        if kind in {"set", "delete"} and self.random.random() < 0.2:
            condition = self.random.randrange(4)
        key = self.random.choice(KEYS)
        client.asked = Operation(
            client.name, client.session, client.server, kind, key, self.clock, value=value, condition=condition
        )
        client.carried_out, client.floor = None, len(self.states) - 1

    def advance(self, client: Client) -> None:
        asked = client.asked
        if asked is None:
            if self.random.random() < 0.1:
                self.move(client)
            self.invoke(client)
        elif self.random.random() < 0.03:
            self.record.append(asked)  # the answer is lost, and so is the session; the operation may have been executed
            client.asked, client.seen, client.session = None, 0, client.session + 100
        elif not asked.is_write:
            self.answer_read(client, asked)
        elif client.carried_out is None:
            client.carried_out = self.carry_out(asked)
        else:
            self.answer_write(client, asked, *client.carried_out)

    def answer_read(self, client: Client, asked: Operation) -> None:
        if asked.kind == "sync+get" and self.applied[client.server] < client.floor:
            if not self.strikes("sync that does not wait"):
                return
            key = asked.key
            now, then = self.states[client.floor][1].get(key), self.states[self.applied[client.server]][1].get(key)
            self.harmed += now is not None and now != then and now[1] <= self.acknowledged(key, asked.invoked)
        zxid, found = self.read(client, asked.key)
        if found is None:
            self.answer(client, asked, zxid, "NoNode", None)
        else:
            self.answer(client, asked, zxid, "", found)

    def answer_write(self, client: Client, asked: Operation, zxid: int, error: str, left: Znode | None) -> None:
        while self.states[self.applied[client.server]][0] < zxid:
            self.applied[client.server] += 1
        self.answer(client, asked, zxid, error, left)

    def answer(self, client: Client, asked: Operation, zxid: int, error: str, found: Znode | None) -> None:
        value, mzxid, version = found or (None, 0, 0)
        self.record.append(
            msgspec.structs.replace(
                asked,
                completed=self.clock,
                outcome="failed" if error else "ok",
                value=asked.value if asked.is_write else value,
                error=error,
                zxid=zxid,
                mzxid=mzxid,
                version=version,
            )
        )
        self.harmed += self.fault == "session goes back" and zxid < client.seen
        client.seen = max(client.seen, zxid)
        client.asked = None

    def move(self, client: Client) -> None:
        target = self.random.choice(SERVERS)
        behind = self.states[self.applied[target]][0] < client.seen
        if behind and self.fault != "session goes back":
            return
        client.server = target

    def acknowledged(self, key: str, before: float) -> int:
        ended = [op for op in self.record if isinstance(op, Operation) and op.acknowledged and op.end < before]
        return max((op.txn for op in ended if op.key == key and op.kind != "delete"), default=0)

    # --- the run

    def run(self, steps: int = STEPS) -> "Fake":
        for _ in range(steps):
            self.clock += 1.0
            if self.random.random() < 0.4:
                server = self.random.choice(SERVERS)
                self.applied[server] = min(self.applied[server] + 1, len(self.states) - 1)
            self.advance(self.random.choice(self.clients))
            if self.random.random() < 0.005:
                self.epoch, self.counter = self.epoch + 1, 0
        self.record += [client.asked for client in self.clients if client.asked is not None]
        for server in SERVERS:
            tree = dict(self.tree)
            if self.fault == "replica misses a write" and server == 2 and tree:
                self.harmed += 1
                tree.popitem()
            leaves = {key: Leaf(node[0], {"mzxid": node[1], "version": node[2]}) for key, node in tree.items()}
            self.record.append(FinalZnodes(server, leaves))
        return self


def found_in(fake: Fake) -> set[str]:
    findings = histories.check(history_of([*fake.record, StaleBound(0.0)]))
    assert not findings.undecided
    return {violation.clause for violation in findings.violations}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_without_a_fault_passes(seed: int) -> None:
    fake = Fake(seed).run()

    findings = histories.check(history_of(fake.record))

    assert findings.passed, str(findings)
    assert findings.stale == ()
    assert findings.acknowledged > 30
    assert findings.synced > 30
    assert findings.unknown > 0


@pytest.mark.parametrize(
    ("fault", "clauses"),
    [
        ("lost write", {"no acknowledged write is missing at the end", "writes and synced reads are linearizable"}),
        ("applied twice", {"writes and synced reads are linearizable"}),
        ("mixed Stat", {"a read returns what was written, with its mzxid and version"}),
        ("session goes back", {"the zxids of a session never go back"}),
        ("sync that does not wait", {SYNCED, BOUNDED}),
        ("replica misses a write", {"replicas are identical at the end"}),
    ],
)  # fmt: skip
def test_each_fault_is_found_by_the_check_that_is_for_it(fault: str, clauses: set[str]) -> None:
    harmed = [fake for seed in SEEDS if (fake := Fake(seed, fault).run()).harmed]

    assert len(harmed) > len(SEEDS) // 2
    found = [found_in(fake) for fake in harmed]
    assert all(found), f"{fault}: {found.count(set())} of {len(harmed)} harmed runs passed"
    assert sum(bool(clauses & each) for each in found) > len(harmed) // 2, found


def test_a_long_history_with_many_unanswered_writes_is_decided() -> None:
    findings = histories.check(history_of(Fake(1).run(steps=15_000).record), bound=20_000)

    assert findings.passed
    assert findings.unknown > 200

"""The search for an order, compared with an enumeration of all orders, on small random histories."""

import random
from itertools import combinations, permutations

import msgspec
import pytest

from checker.histories import Operation
from checker.histories.linearizable import Linearization, search
from checker.histories.record import Kind

KINDS: tuple[Kind, ...] = ("create", "set", "set", "delete", "sync+get")


def drawn(seed: int) -> list[Operation]:
    """Return six overlapping operations, executed in a hidden order; in half of the cases one answer is falsified."""
    choose = random.Random(seed)
    operations: list[Operation] = []
    value, version = "", -1
    for number in range(6):
        kind = choose.choice(KINDS) if number else "create"
        asked = f"v{number}" if kind in {"create", "set"} else None
        condition = choose.choice((-1, -1, 0, 1)) if kind in {"set", "delete"} else -1
        error = ""
        if (kind == "create") == (version >= 0):
            error = "NodeExists" if kind == "create" else "NoNode"
        elif condition not in {-1, version} and kind != "create":
            error = "BadVersion"
        happened = not error and choose.random() < 0.9
        if happened and kind != "sync+get":
            value, version = (asked or "", version + 1) if kind != "delete" else ("", -1)
        begin, end = number - choose.uniform(0, 2.5), number + choose.uniform(0, 2.5)
        told = value if kind == "sync+get" and not error else asked
        answer = Operation(
            "c",
            number,
            1,
            kind,
            "/k",
            begin,
            end,
            "failed" if error else "ok",
            told,
            condition,
            error,
            mzxid=1,  # the reply has a Stat, so its version counts
            version=version,
        )
        if not (happened or error) or choose.random() < 0.15:
            answer = Operation("c", number, 1, kind, "/k", begin, None, "unknown", asked, condition)
        operations.append(answer)
    if choose.random() < 0.5:
        bent = choose.randrange(6)
        other = choose.randrange(3)
        operations[bent] = msgspec.structs.replace(operations[bent], version=other)
    return choose.sample(operations, 6)


def explained(order: tuple[Operation, ...]) -> bool:
    """Whether one order explains every answer; an independent implementation of ZooKeeper's behaviour."""
    value, version = None, -1
    for op in order:
        exists = version >= 0
        matches = exists and op.condition in {-1, version}
        if op.outcome == "failed":
            holds = {"NoNode": not exists, "NodeExists": exists, "BadVersion": exists and op.condition != version}
            if not holds[op.error]:
                return False
        elif op.kind == "sync+get":
            if not exists or (op.value, op.version) != (value, version):
                return False
        elif op.kind == "create":
            if exists or (op.outcome == "ok" and op.version != 0):
                return False
            value, version = op.value, 0
        elif not matches:
            return False
        elif op.kind == "delete":
            value, version = None, -1
        else:
            if op.outcome == "ok" and op.version != version + 1:
                return False
            value, version = op.value, version + 1
    return True


def in_real_time(order: tuple[Operation, ...]) -> bool:
    return not any(later.end < earlier.invoked for earlier, later in combinations(order, 2))


def any_order(operations: list[Operation]) -> bool:
    answered = [op for op in operations if op.outcome != "unknown"]
    unanswered = [op for op in operations if op.outcome == "unknown" and op.kind != "sync+get"]
    for size in range(len(unanswered) + 1):
        for happened in combinations(unanswered, size):
            for order in permutations([*answered, *happened]):
                if in_real_time(order) and explained(order):
                    return True
    return False


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_the_search_agrees_with_trying_every_order(first: int) -> None:
    found = {seed: isinstance(search(drawn(seed)), Linearization) for seed in range(first, first + 50)}

    assert found == {seed: any_order(drawn(seed)) for seed in found}
    assert set(found.values()) == {True, False}

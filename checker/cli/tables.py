"""The computed tables of the guide: service after the loss of servers (R2) and of links (R3).

Every cell is the verdict of an exhausted exploration with the oracle, from an ensemble that had elected its highest
server. The question is whether, in every final state after all losses, a server leads with a quorum within reach.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from checker.engine import Finding, Kind, ModelError, Property, Read, Stop
from checker.engine.search import explore
from checker.kit.environment import LINKS
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, Setup, ensemble
from checker.models.ensemble.setup import Link, server_name
from checker.models.ensemble.status import ElectionStatus, election_status, is_established
from checker.properties import ENSEMBLE_PROPERTIES
from spec.quorum import majority_view

SIZES_OF_LOSS = range(2, 7)
SIZES_OF_PARTITION = (5, 6)
CUT_OFF = (1, 2, 3)


@dataclass(frozen=True)
class Loss:
    """The number of servers that may fail, in any combination, before service stops; and the states explored."""

    servers: int
    survives: int
    states: int


@dataclass(frozen=True)
class Partition:
    """The sides that serve after some followers are cut off from the leader and the rest."""

    servers: int
    cut_off: int
    leader_side_serves: bool
    cut_off_side_serves: bool
    states: int


def losses() -> list[Loss]:
    """The table R2, for two to six servers."""
    return [_loss(servers) for servers in SIZES_OF_LOSS]


def partitions() -> list[Partition]:
    """The table R3, for five and six servers with one, two or three followers cut off."""
    return [_partition(servers, cut_off) for servers in SIZES_OF_PARTITION for cut_off in CUT_OFF]


def _loss(servers: int) -> Loss:
    states, survived = 0, 0
    for crashes in range(1, servers + 1):
        setup = _settled(servers, Budgets(crashes=crashes))
        always, count = _never_found(setup, ENSEMBLE_PROPERTIES.build(setup, "Serves"))
        states += count
        if not always:
            break
        survived = crashes
    return Loss(servers, survived, states)


def _partition(servers: int, cut_off: int) -> Partition:
    setup = _settled(servers, Budgets(partitions=1))
    answers, states = [], 0
    for leaders_side in (True, False):
        always, count = _never_found(setup, _side(setup, cut_off, leaders_side, serving=False))
        never, more = _never_found(setup, _side(setup, cut_off, leaders_side, serving=True))
        if always == never:
            raise ModelError("which side serves depends on more than how many servers are cut off")
        answers.append(always)
        states += count + more
    return Partition(servers, cut_off, answers[0], answers[1], states)


def _settled(servers: int, budgets: Budgets) -> Setup:
    sids = tuple(range(1, servers + 1))
    file = File("zoo.cfg", majority_view(sids))
    members = tuple(Member(sid, file) for sid in sids)
    return Setup(members, Grain.ORACLE, (Prologue(sids),), budgets=budgets)


def _never_found(setup: Setup, prop: Property) -> tuple[bool, int]:
    """Whether an exhausted exploration has no finding, and its number of states."""
    result = explore(ensemble("table", setup, [prop]))
    if result.stop is Stop.INTERRUPTED:
        raise KeyboardInterrupt
    if result.stop not in (Stop.EXHAUSTED, Stop.FOUND):
        raise ModelError(f"a cell of a table was not explored to its end: {result.stop.value}")
    return prop.name not in result.found, result.states


def _side(setup: Setup, cut_off: int, leaders_side: bool, *, serving: bool) -> Property:
    """A property with a finding if one side serves (or does not), in states with `cut_off` servers off the former
    leader.
    """
    former = max(setup.sids)

    def check(cut: frozenset[Link], *seen: ElectionStatus | str) -> Finding | None:
        away = {sid for sid in setup.sids if (min(sid, former), max(sid, former)) in cut}
        if len(away) != cut_off:
            return None
        side = set(setup.sids) - away if leaders_side else away
        standings = {sid: status for sid, status in zip(setup.sids, seen, strict=True) if sid in side}
        serves_now = any(is_established(standings, sid) for sid in side)
        return Finding("it does" if serving else "it does not") if serves_now is serving else None

    reads = (Read(LINKS), *(Read(server_name(sid), election_status) for sid in setup.sids))
    return Property("side", reads, check, Kind.FINAL)


def report() -> tuple[str, dict[str, Any]]:
    """Both tables as text, and as data."""
    lost, parted = losses(), partitions()
    text = "\n".join(
        [
            "R2  How many servers may fail, whichever they are, and the rest still serve",
            *_table(
                ("servers", "quorum", "survives the loss of", "states explored"),
                [(row.servers, row.servers // 2 + 1, row.survives, row.states) for row in lost],
            ),
            "",
            "R3  Followers are cut off from the leader and the rest: which side has a leader in the end",
            *_table(
                ("servers", "cut off", "the leader's side", "the side cut off", "states explored"),
                [
                    (row.servers, row.cut_off, _word(row.leader_side_serves), _word(row.cut_off_side_serves),
                     row.states)
                    for row in parted
                ],
            ),
        ]
    )  # fmt: skip
    return text, {"R2": [vars(row) for row in lost], "R3": [vars(row) for row in parted]}


def _word(side_serves: bool) -> str:
    return "serves" if side_serves else "no leader"


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> list[str]:
    cells = [head, *(tuple(f"{cell:,}" if isinstance(cell, int) else cell for cell in row) for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(head))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]

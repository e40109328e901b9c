"""Traces for tests: one with everything that a picture draws, one with a loop, and those of shipped scenarios."""

from collections.abc import Mapping, Sequence
from functools import cache

from checker.engine.model import Kind
from checker.engine.search import explore
from checker.job import DiagramEvent, Json, Verdict
from checker.scenario import bundled, load
from checker.traces import Trace, TraceStep, Truth, trace_of
from checker.traces.trace import Lanes, changed_fields

SHIPPED = {
    "an election in one step": "r10-wrong-order",
    "message by message": "r10-wrong-order-fine",
    "the whole protocol": "r10-zab-leader-last-loses-a-write",
    "a service": "r13-stale-after-moving",
    "a recipe that stays for ever": "r19-no-protection-never-served",
    "votes for ever": "zookeeper-1419-never-elects",
}
"""Shipped scenarios of every kind with a finding, by a description."""


def made(
    steps: Sequence[tuple[str, Lanes, Sequence[DiagramEvent]]],
    truth: Sequence[Mapping[str, Truth]],
    *,
    kind: Kind = Kind.ALWAYS,
    loop: int | None = None,
    since: int | None = None,
    names: Mapping[str, Json] | None = None,
) -> Trace:
    """Return a trace of steps (caption, lanes, drawn) with the truth values after each. `names` are fields of the
    trace.
    """
    told = []
    before: Lanes = {}
    for number, ((caption, lanes, drawn), said) in enumerate(zip(steps, truth, strict=True)):
        changed = changed_fields(before, lanes)
        action = "act" if number else None
        told.append(TraceStep(number, action, (), caption, lanes, changed, tuple(drawn), dict(said)))
        before = lanes
    about = {"job": "a job", "grain": "fine", "prop": "P", "clause": "it is so", **(names or {})}
    return Trace(
        job=about["job"],
        source={"kind": "test"},
        grain=about["grain"],
        bounds=("at most 2 crashes",),
        verdict=Verdict.VIOLATED,
        prop=about["prop"],
        kind=kind,
        clause=about["clause"],
        values=(("leader", 3), ("epoch", None)),
        steps=tuple(told),
        loop=loop,
        since=since,
    )


LONG = "a vote that is told at such length that no picture has the room for it, however wide its lanes may be"


def everything() -> Trace:
    """Return a trace with messages that arrive, are lost or are in flight, a crash, a start, broken and healed links,
    notes.
    """
    up, down = {"state": "up", "vote": {"leader": 1, "epoch": 1}}, {"state": "down"}
    voted = {"state": "up", "vote": {"leader": 3, "epoch": 1}}
    steps = [
        ("at first", {"a": up, "b": up, "c": up}, []),
        ("a tells its vote", {"a": up, "b": up, "c": up}, [send("a", "b", 1), send("a", "c", 2, LONG)]),
        ("a is cut off", {"a": up, "b": up, "c": up}, [*links("cut"), DiagramEvent("lost", "a", "vote 1", "b", 1)]),
        ("c hears a", {"a": up, "b": up, "c": voted}, [DiagramEvent("deliver", "c", LONG, "a", 2), send("c", "b", 3)]),
        ("b crashes", {"a": up, "b": down, "c": voted}, [DiagramEvent("crash", "b", "stops")]),
        ("all is whole", {"a": up, "b": down, "c": voted}, links("heal")),
        ("b starts", {"a": up, "b": up, "c": voted}, [DiagramEvent("start", "b", "starts with zoo-5.cfg")]),
        ("c decides", {"a": up, "b": up, "c": {"state": "LEADING"}}, [DiagramEvent("decide", "c", "LEADING")]),
        (
            "c serves",
            {"a": up, "b": up, "c": {"state": "LEADING"}},
            [DiagramEvent("note", "c", "*holds*"), DiagramEvent("note", "a", "is told", "b"), send("c", "a", 4)],
        ),
    ]
    truths = [{"P": Truth.TRIVIAL, "Q": Truth.UNSEEN}] * 4 + [{"P": Truth.HOLDS, "Q": Truth.WITNESSED}] * 4
    return made(steps, [*truths, {"P": Truth.FAILS, "Q": Truth.UNSEEN}])


def repeating() -> Trace:
    """Return a run of four moves; the last two repeat for ever."""
    one, two = {"a": {"vote": 1}, "b": {"vote": 2}}, {"a": {"vote": 2}, "b": {"vote": 2}}
    steps = [("at first", one, []), ("a turns", two, []), ("a turns back", one, []), ("a turns", two, [])]
    steps.append(("a turns back", one, [DiagramEvent("note", "a", "once more")]))
    return made(steps, [{"P": Truth.OPEN}] * 5, kind=Kind.EVENTUALLY, loop=2, since=1)


@cache
def shipped(what: str) -> Trace:
    """Return the trace of the first violation of a shipped scenario, selected by its description in `SHIPPED`."""
    path = next(path for path in bundled() if path.stem == SHIPPED[what])
    job = load(path)
    return trace_of(job, explore(job.model, job.limits).violations[0])


def send(lane: str, peer: str, number: int, text: str = "vote 1") -> DiagramEvent:
    return DiagramEvent("send", lane, text, peer, number)


def links(kind: str) -> list[DiagramEvent]:
    """Return the events of both links of `a`."""
    return [DiagramEvent(kind, "a", kind, "b"), DiagramEvent(kind, "a", kind, "c")]

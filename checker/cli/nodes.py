"""The runs of `--nodes N`: a named set that checks an ensemble in several situations, or one run with other options.

    cold start           an election with all its messages, and the first steps of its leader
    established          a leader that serves: writes, a crash, a return, re-election, synchronisation
    crash, observer, another view
                         the same with an observer, one server whose file does not name it, and a dropped connection
    a broken link        an election with all its messages after a link was cut; only the election
    faults of every kind the oracle's elections under every fault; only the election

Rules of this module:

- A run is a scenario with the files that it needs, so its trace can be replayed without this command line.
- Each run of the set checks every invariant of its protocol. An invariant whose premise never holds makes the run
  vacuous, except where the bounds of the run exclude the premise: these may stay silent, and are reported as allowed.
- A run that takes long has a depth limit, which `--depth` replaces.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from checker.cli.options import OPTIONAL, option
from checker.engine import Limits
from checker.job import Job, Verdict
from checker.models.ensemble.actions import BUDGETS, Section
from checker.scenario import ScenarioError, VariantError, from_text
from checker.scenario.yaml_lines import LikeError, write_yaml
from spec.quorum import Sid

FINE_UP_TO = 4  # the greatest number of servers whose election can be explored with all its messages
BEGINNING = ("LeaderIsAVoter", "OnlyVotersCounted", "Leadership", "OnlyVotersAck", "NoBadState")
DEPTHS = {4: 30, 5: 22, 6: 17, 7: 13}
"""The depth limits of the long runs of the whole server, by the number of servers."""
SETTINGS = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/data\nclientPort=2181\nstandaloneEnabled=false\n"


class NodesError(Exception):
    """Options that exclude each other; the message has a correction."""


@dataclass(frozen=True)
class Run:
    """A run of an ensemble; each field is an option of the command line. The last `observers` servers are observers.

    The last `late` servers start late or never. `given` is the number of transactions on every disk at the start.
    `silent` names actions that need not fire and invariants whose premise need not hold. `properties` are the
    invariants; the usual ones if it is empty.
    """

    nodes: int
    name: str = "as described"
    observers: int = 0
    grain: str = "fine"
    established: bool = False
    other_views: Mapping[Sid, Iterable[Sid]] = field(default_factory=dict)
    rounds: int = 2
    capacity: int = 2
    late: int = 0
    budgets: Mapping[str, int] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    protocol: str = "election"
    discovery: str | None = None
    given: int = 0
    properties: tuple[str, ...] = ()
    depth: int | None = None

    def scenario(self) -> tuple[str, dict[str, str]]:
        """The text of the scenario, and its files by their names."""
        sids = range(1, self.nodes + 1)
        observers = frozenset(sids[self.nodes - self.observers :])
        files = {f"server-{sid}.cfg": _file(voters) for sid, voters in self.other_views.items()}
        files["zoo.cfg"] = _file(sids, observers)
        disk = {"epoch": 1, "log": [{"zxid": f"1:{n}", "value": "given"} for n in range(1, self.given + 1)]}
        servers = {
            sid: {
                "file": f"server-{sid}.cfg" if sid in self.other_views else "zoo.cfg",
                "late": sid > self.nodes - self.late,
                **(disk if self.given else {}),
            }
            for sid in sids
        }
        budgets = {name: count for name, count in self.budgets.items() if count}
        sections = {
            section.value: {name: count for name, count in budgets.items() if BUDGETS[name].section is section}
            for section in Section
        }
        keys: dict[str, Any] = {
            "name": self.name,
            "servers": servers,
            "history": [{"start": list(sids)}] if self.established else [],
            "protocol": self.protocol,
            "discovery": self.discovery,
            "grain": self.grain,
            "rounds": self.rounds,
            "elections": budgets.get("elections"),
            "channel": {"capacity": self.capacity},
            "sometimes": ["Elected"] if self.protocol == "election" else [],
            **{name: counts for name, counts in sections.items() if counts},
            **({"always": list(self.properties)} if self.properties else {}),
        }
        return write_yaml({key: value for key, value in keys.items() if value != []}), files


def _file(voters: Iterable[Sid], observers: Iterable[Sid] = ()) -> str:
    """A zoo.cfg with these servers; the observers are among them."""
    lines = (f"server.{n}=zoo{n}:2888:3888{':observer' if n in observers else ''}\n" for n in voters)
    return SETTINGS + "".join(lines)


def jobs(options: argparse.Namespace) -> list[Job]:
    """The jobs that the command line requests: those in which its variants and defects may have an effect.

    Raises NodesError.
    """
    run = _described(options)
    made, refusals = [], dict[str, None]()
    for preset in preset_runs(options.nodes) if run is None else (run,):
        try:
            made.append(_job(preset, options))
        except LikeError as error:
            refusals[f"--like {options.like}: {error.reason.what}; add --protocol zab"] = None
        except VariantError as error:
            refusals[f"--variant {error.name}: {error.reason.what}; take a scenario, where it may: run FILE"] = None
        except ScenarioError as error:
            raise NodesError(str(error)) from None
    if not made:
        raise NodesError("; ".join(refusals))
    return made


def _job(run: Run, options: argparse.Namespace) -> Job:
    variants, like = options.variants, options.like
    text, files = run.scenario()
    job = from_text(text, files.get, f"{run.name}.yaml", variants, like)
    silent = job.allowed_silent if run.nodes > 1 else job.actions
    return replace(
        job,
        limits=Limits(depth=run.depth if options.depth is None else options.depth),
        expected=None if variants or like else Verdict.PASSED,
        allowed_silent=frozenset({*silent, *run.silent}),
    )


def _described(options: argparse.Namespace) -> Run | None:
    """The one run that the options describe; None if they only give the number of servers. Raises NodesError."""
    budgets = {name: getattr(options, name) for name in OPTIONAL if getattr(options, name)}
    plain = (options.observers, options.grain, options.established, options.other_view, options.late, options.protocol)
    usual = (options.rounds, options.capacity, options.discovery) == (2, 2, None)
    if not budgets and plain == (0, None, False, [], None, None) and usual:
        return None
    if options.late is not None and options.established:
        raise NodesError("--late and --established exclude one another: a late server has not started yet")
    if options.observers >= options.nodes:
        raise NodesError(f"--observers {options.observers} leaves no voter among {options.nodes} servers")
    views = dict(options.other_view)
    if len(views) < len(options.other_view):
        raise NodesError("--other-view gives one server two files; give each server one")
    for sid, voters in views.items():
        if sid > options.nodes:
            raise NodesError(f"--other-view names server {sid}, and there are the servers 1 to {options.nodes}")
        if sid not in voters:
            raise NodesError(f"--other-view {sid}: its own file must name it, and the voters given leave it out")
    of_zab = [option(name) for name in budgets if BUDGETS[name].domain.is_of_zab]
    of_zab += ["--discovery"] * bool(options.discovery)
    if options.protocol != "zab" and of_zab:
        raise NodesError(f"{of_zab[0]} changes nothing where the election is all there is; add --protocol zab")
    coarse = [f"--{name}" for name in ("elections", "discovery") if getattr(options, name)]
    if options.grain != "oracle" and coarse:
        raise NodesError(f"{coarse[0]} changes nothing message by message; add --grain oracle")
    late = 0 if options.established else options.nodes if options.late is None else min(options.late, options.nodes)
    return Run(
        options.nodes, observers=options.observers, grain=options.grain or "fine", established=options.established,
        other_views=views, rounds=options.rounds, capacity=options.capacity, late=late, budgets=budgets,
        protocol=options.protocol or "election", discovery=options.discovery,
    )  # fmt: skip


def preset_runs(nodes: int) -> Iterator[Run]:
    """The set for this number of servers."""
    fine = nodes <= FINE_UP_TO
    run = Run(nodes, depth=DEPTHS.get(nodes))
    if fine:
        # In one round only one leader is established: a second one would be the violation. A single server waits for no
        # ACK.
        properties = tuple(name for name in BEGINNING if nodes > 1 or name != "OnlyVotersAck")
        yield replace(
            run, name="cold start", protocol="zab", rounds=1, properties=properties, silent=("Leadership",)
        )  # fmt: skip
    else:
        yield Run(nodes, "cold start", grain="oracle", late=nodes)
    # The whole server, from a leader that serves: two writes, a crash and a return, one more election.
    budgets = {"elections": 1, "writes": 2, "crashes": 1, "restarts": 1}
    whole = replace(
        run, protocol="zab", grain="oracle", discovery="one-step", established=True, given=1, budgets=budgets
    )  # fmt: skip
    # Neither of two voters leads without the other, so the one with more transactions leads, and none is truncated.
    of_two = ("CommittedLogDurability",)
    if nodes > 1:
        yield replace(whole, name="established", silent=of_two if nodes == 2 else ())
    if nodes > 2:
        yield replace(
            whole, name="crash, observer, another view", observers=1, budgets={**budgets, "disconnects": 1},
            other_views={nodes - 1: range(1, nodes)}, silent=of_two if nodes == 3 else (),
        )  # fmt: skip
    if nodes > 1 and fine:
        # A server that was cut off hears from the decided servers, and joins them without a `decide` step.
        links = {"cuts": 1, "heals": 1, "notification_timeouts": 1}
        yield Run(nodes, "a broken link", established=True, budgets=links, silent=("decide",))
    if nodes > 1:
        less = {"crashes": 1, "restarts": 1, "partitions": 1, "heals": 1}
        every = {"crashes": 2, "restarts": 2, "cuts": 1, "partitions": 1, "heals": 1}
        yield Run(nodes, "faults of every kind", grain="oracle", late=nodes, budgets=every if fine else less)

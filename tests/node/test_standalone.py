"""One server becomes three, and three become one, on live servers under writes.

Seen on 3.9.5: if the new servers start first, they elect a leader over empty disks, and the standalone server throws
its writes away. Along the plan that the planner prints, every acknowledged write is kept, with a kill in between too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from checker.rollout import Engine, Plan, PlanRequest, SafetyVerdict, plan, read_folder
from checker.rollout.orders import START, STOP, ServerStep
from checker.rollout.route_verdict import PlanRoute
from checker.scenario import bundled
from harness.ensemble import Ensemble
from tests.node.conftest import NEWEST
from tests.node.hostile import client
from tests.node.patience import PATIENT
from tests.support.programs import need_kind

FOLDERS = bundled()[0].parent.parent / "rollouts"
NEW = (1, 2, 3)
RUNS = 5
RELEASES = [pytest.param(NEWEST, number, marks=pytest.mark.slow) for number in range(RUNS)]


@cache
def planned(old: str, new: str) -> Plan:
    made = plan(PlanRequest(read_folder(FOLDERS / old), read_folder(FOLDERS / new)), Engine().run)
    assert made.outcome is SafetyVerdict.SAFE
    return made


@contextmanager
def ensemble_of_three(kind: str, release: str, directory: Path) -> Iterator[Ensemble]:
    need_kind(kind, release)
    with Ensemble([kind] * 3, directory, release=release, **PATIENT) as ensemble:
        yield ensemble


class Writer:
    """A client of all three servers that creates znodes one after the other; `acknowledged` are the answered ones."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.acknowledged: list[str] = []
        self._hosts = ",".join(ensemble.address(sid) for sid in ensemble.sids)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _write(self) -> None:
        number = 0
        while not self._ended.is_set():
            writing = KazooClient(hosts=self._hosts, timeout=10.0)
            try:
                writing.start(timeout=5)
                while not self._ended.is_set():
                    number += 1
                    writing.create(f"/w-{number:06}", b"x")
                    self.acknowledged.append(f"w-{number:06}")
                    self._ended.wait(0.01)
            except (KazooException, KazooTimeoutError):
                pass  # this write has no answer; the next client writes the next one
            finally:
                writing.stop()
                writing.close()


def names(ensemble: Ensemble, sid: int) -> set[str]:
    """Return the znodes of a server, after it has caught up with its leader."""
    with client(ensemble, sid) as asking:
        asking.sync("/")
        return set(asking.get_children("/")) - {"zookeeper"}


def follow(ensemble: Ensemble, part: PlanRoute, step: ServerStep, *, kill: bool) -> None:
    """Do one step of a plan; with `kill` the server that starts is killed and started once more."""
    if step.action != START:
        ensemble.stop(step.sid)
    if step.action == STOP:
        return
    if part.stage.new.view.standalone:
        ensemble.tell_alone(step.sid)
    else:
        ensemble.tell(step.sid, part.stage.new.members)
    ensemble.start(step.sid)
    if kill:
        ensemble.kill(step.sid)
        ensemble.start(step.sid)
    if step.wait:
        ensemble.wait_serving([step.sid], 90)


def follow_plan(ensemble: Ensemble, made: Plan, killed: int) -> list[str]:
    """Follow the recommended stages under writes, with a kill in one step, and return the acknowledged writes."""
    number = 0
    with Writer(ensemble) as writer:
        for part in made.advised:
            leader = ensemble.leader()
            order = next((each for each in part.orders if each.leader == leader), part.orders[0])
            for step in order.steps:
                follow(ensemble, part, step, kill=number == killed)
                number += 1
        ensemble.wait_serving()
        before = len(writer.acknowledged)
        threading.Event().wait(2)
        assert len(writer.acknowledged) > before, "clients write again when the plan is done"
    return writer.acknowledged


@pytest.mark.parametrize(("release", "number"), RELEASES)
def test_new_servers_first_and_the_standalone_server_throws_its_writes_away(
    release: str, number: int, tmp_path: Path
) -> None:
    with ensemble_of_three("real", release, tmp_path) as ensemble:
        ensemble.tell_alone(1)
        ensemble.start(1)
        ensemble.wait_serving([1])
        with client(ensemble, 1) as alone:
            for count in range(20 + number):
                alone.create(f"/old-{count}")
            for sid in (2, 3):
                ensemble.tell(sid, NEW)
                ensemble.start(sid)
            ensemble.wait_serving([2, 3])
            assert ensemble.role(1) == "standalone"
            alone.create("/beside")
        with client(ensemble, 2, 3) as others:
            assert others.get_children("/") == ["zookeeper"]
            others.create("/new")
        ensemble.stop(1)
        ensemble.tell(1, NEW)
        ensemble.start(1)
        ensemble.wait_serving([1])
        assert {sid: names(ensemble, sid) for sid in NEW} == {sid: {"new"} for sid in NEW}


@pytest.mark.parametrize(("release", "number"), RELEASES)
def test_the_plan_from_one_to_three_keeps_every_acknowledged_write(release: str, number: int, tmp_path: Path) -> None:
    made = planned("one", "three")
    assert not made.stages
    with ensemble_of_three("real", release, tmp_path) as ensemble:
        ensemble.tell_alone(1)
        ensemble.start(1)
        ensemble.wait_serving([1])
        with client(ensemble, 1) as alone:
            alone.create("/first")
        written = follow_plan(ensemble, made, number)
        for sid in NEW:
            assert {"first", *written} <= names(ensemble, sid)


@pytest.mark.parametrize(("release", "number"), RELEASES)
def test_the_plan_from_three_to_one_keeps_every_acknowledged_write(release: str, number: int, tmp_path: Path) -> None:
    made = planned("three", "one")
    assert len(made.stages) == 2
    with ensemble_of_three("real", release, tmp_path) as ensemble:
        ensemble.start_all()
        written = follow_plan(ensemble, made, number)
        assert ensemble.running == (1,) and ensemble.role(1) == "standalone"
        assert set(written) <= names(ensemble, 1)


@pytest.mark.slow
def test_a_standalone_server_beside_the_other_two_serves_writes_that_they_do_not_have(tmp_path: Path) -> None:
    with ensemble_of_three("real", NEWEST, tmp_path) as ensemble:
        ensemble.start_all()
        ensemble.stop(1)
        ensemble.tell_alone(1)
        ensemble.start(1)
        ensemble.wait_serving()
        assert ensemble.role(1) == "standalone" and "leader" in {ensemble.role(2), ensemble.role(3)}
        for sids, name in (((1,), "alone"), ((2, 3), "quorum")):
            with client(ensemble, *sids) as writing:
                writing.create(f"/{name}")
        assert names(ensemble, 1) == {"alone"} and names(ensemble, 2) == names(ensemble, 3) == {"quorum"}


def test_a_node_alone_becomes_one_of_three_and_keeps_its_writes(tmp_path: Path) -> None:
    """The node without server lines runs standalone, writes no epoch, and its disk is that of a member afterwards."""
    with ensemble_of_three("node", NEWEST, tmp_path) as ensemble:
        ensemble.tell_alone(1)
        ensemble.start(1)
        ensemble.wait_serving([1])
        assert ensemble.role(1) == "standalone"
        with client(ensemble, 1) as alone:
            alone.create("/kept")
        assert not list(ensemble.data(1).glob("**/*Epoch"))
        ensemble.stop(1)
        for sid in (2, 1, 3):
            ensemble.tell(sid, NEW)
            ensemble.start(sid)
            if sid != 2:
                ensemble.wait_serving([sid])
        for sid in NEW:
            assert names(ensemble, sid) == {"kept"}

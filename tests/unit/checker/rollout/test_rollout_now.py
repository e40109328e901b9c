"""A roll-out continues from the state of a diagnosis, and takes no server as healthy.

Real servers gave the incidents, as in `test_diagnose.py`. Canned answers (`tests/support/live_answers.py`) and written
files make the other states.
"""

import json
import tarfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import copy
from typing import NamedTuple

import pytest

from checker.diagnose.present_state import present_state
from checker.rollout import read_folder
from checker.rollout.files.differences import Interruption, UnfitStateError
from checker.rollout.inputs.folders import Folder
from spec.config import ConfigError
from spec.quorum import Sid
from tests.support.command_line import cli
from tests.support.live_answers import LOOKING, WHITELIST, conf, refusing, serving, srvr
from tests.unit.checker.diagnose.test_diagnose import DEEDS, INCIDENTS

THREE, FOUR, FIVE = (range(1, last) for last in (4, 5, 6))


def lines(members: Collection[Sid], role: str = "") -> str:
    return "".join(f"server.{sid}=127.0.0.1:{20000 + sid}:{30000 + sid}{role}\n" for sid in members)


def serves(sid: Sid, members: Collection[Sid], mode: str = "follower") -> dict[str, str]:
    """The answers of a server that serves with these members."""
    return {"conf": conf(sid, f"{lines(members, ':participant')}version=0"), "srvr": srvr(mode)}


class Scene(NamedTuple):
    """The addresses of servers, the states before and after a change, and the files that the servers have now."""

    addresses: dict[Sid, str]
    old: Folder
    new: Folder
    now: Path

    @property
    def inputs(self) -> list[str]:
        return [str(self.now), *self.addresses.values()]

    @property
    def state(self) -> Interruption:
        return present_state(self.inputs, self.old, self.new)

    def asked(self, *more: object, inputs: Collection[str] | None = None) -> tuple[int, str, str]:
        given = ("--from", self.old.path, "--to", self.new.path, "--now", *(inputs or self.inputs), *more)
        return cli("rollout", *given, "--faults", 0, "--budget", "4s", "--no-cache", "--json")


@contextmanager
def scene(
    home: Path,
    answers: Mapping[Sid, Mapping[str, str] | None],
    old: Collection[Sid],
    new: Collection[Sid],
    renewed: Collection[Sid] = (),
    key: str = "",
) -> Iterator[Scene]:
    """Servers with these answers, None where nothing listens; `renewed` have their new files, which have a `key`."""
    with ExitStack() as stack:
        addresses = {
            sid: stack.enter_context(refusing() if words is None else serving(words)) for sid, words in answers.items()
        }

        def text(sid: Sid, members: Collection[Sid], more: str = "") -> str:
            port = addresses.get(sid, ":1").rpartition(":")[2]
            head = f"tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/var/lib/zookeeper\nclientPort={port}\n"
            return head + more + lines(members)

        def put(name: str, sids: Collection[Sid], newer: Collection[Sid]) -> Path:
            for sid in sids:
                path = home / name / str(sid)
                path.mkdir(parents=True, exist_ok=True)
                (path / "zoo.cfg").write_text(text(sid, new, key) if sid in newer else text(sid, old))
            return home / name

        folders = put("old", old, ()), put("new", new, new)
        now = put("now", {*(sid for sid in old if sid in new or sid in answers), *renewed}, renewed)
        yield Scene(addresses, *map(read_folder, folders), now)


# Real incidents.


@pytest.mark.parametrize("grown", [False, True], ids=["the same files", "one server more"])
@pytest.mark.parametrize("name", DEEDS)
def test_no_roll_out_goes_on_from_a_real_incident(tmp_path: Path, name: str, grown: bool) -> None:
    with tarfile.open(INCIDENTS / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    incident, before, after = tmp_path / name, tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
        for path in (incident / "1").glob("zoo.cfg*"):
            if path.suffix not in (".next", ".bak"):
                copy(path, folder)
    (file,) = (path for path in after.iterdir() if "server.1=" in path.read_text())
    file.write_text(file.read_text() + ("\nserver.9=127.9.9.9:2888:3888\n" if grown else ""))
    ended = cli("rollout", "--from", before, "--to", after, "--now", incident)
    assert ended.code == 20 and ended.out == "" and ended.err.count("\n") == 1
    cause, _ = DEEDS[name]
    assert f"no roll-out goes on from this state: {cause}. " in ended.err
    assert f"`python -m checker diagnose {incident}` says what is safe now" in ended.err


# The evidence.


def test_servers_that_answer_are_the_state(tmp_path: Path) -> None:
    answers = {1: serves(1, FOUR), 2: serves(2, THREE), 3: serves(3, THREE, "leader"), 4: serves(4, FOUR)}
    with scene(tmp_path, answers, THREE, FOUR, (1, 4)) as given:
        state = given.state
        code, out, _ = given.asked()
    assert (state.applied, state.leader) == ({1, 4}, 3)
    assert not state.unseen | state.looking | state.unstated
    answer = json.loads(out)
    assert (code, answer["verdict"], answer["now"]["unseen"]) == (0, "safe", [])


@pytest.mark.parametrize(("files", "applied"), [((1, 4), {1, 4}), ((), set())], ids=["under way", "not begun"])
def test_files_alone_do_not_show_what_runs(tmp_path: Path, files: tuple[Sid, ...], applied: set[Sid]) -> None:
    with scene(tmp_path, {}, THREE, FOUR, files) as given:
        code, out, _ = given.asked()
    answer = json.loads(out)
    assert (code, answer["verdict"], set(answer["now"]["applied"])) == (20, "undecided", applied)
    assert answer["now"]["unseen"] == [1, 2, 3, 4]
    assert all(
        "nothing shows whether servers 1 to 4 run now" in claim["because"] for claim in answer["direct"]["answers"]
    )


def test_a_state_with_nothing_left_to_do_is_not_safe_either_without_answers(tmp_path: Path) -> None:
    with scene(tmp_path, {}, THREE, FOUR, FOUR) as given:
        code, out, _ = given.asked()
    assert (code, json.loads(out)["verdict"]) == (20, "undecided")


def test_a_new_server_runs_not_if_nothing_listens_at_its_address(tmp_path: Path) -> None:
    answers = {sid: serves(sid, THREE, "leader" if sid == 3 else "follower") for sid in THREE}
    with scene(tmp_path, {**answers, 4: None}, THREE, FOUR) as given:
        assert given.state.unseen == set() and given.asked()[0] == 0
        without = [str(given.now), *(given.addresses[sid] for sid in THREE)]
        assert present_state(without, given.old, given.new).unseen == {4}
        assert given.asked(inputs=without)[0] == 20


def test_a_new_file_without_a_restart_is_not_applied(tmp_path: Path) -> None:
    answers = {sid: serves(sid, THREE, "leader" if sid == 3 else "follower") for sid in THREE}
    with scene(tmp_path, {**answers, 4: None}, THREE, FOUR, FOUR) as given:
        assert given.state.applied == set()


@pytest.mark.parametrize(("key", "unstated"), [("portUnification=true\n", {1, 2, 3}), ("snapCount=9\n", set())])
def test_a_key_that_answers_do_not_state_is_read_from_the_file(tmp_path: Path, key: str, unstated: set[Sid]) -> None:
    answers = {sid: serves(sid, THREE, "leader" if sid == 3 else "follower") for sid in THREE}
    with scene(tmp_path, answers, THREE, THREE, (1,), key) as given:
        assert (given.state.applied, given.state.unstated) == ({1}, set())
        alone = present_state([*given.addresses.values()], given.old, given.new)
        code, out, _ = given.asked(inputs=[*given.addresses.values()])
    assert (alone.applied, alone.unstated) == (set(), unstated)
    assert code == (20 if unstated else 0)
    assert ("nothing shows with which file servers 1, 2 and 3 run" in out) == bool(unstated)


def test_a_removed_server_has_stopped_if_nothing_listens_at_its_address(tmp_path: Path) -> None:
    answers = {sid: serves(sid, FOUR, "leader" if sid == 3 else "follower") for sid in THREE}
    with scene(tmp_path, {**answers, 4: None}, FOUR, THREE) as given:
        assert (given.state.applied, given.state.unseen) == ({4}, set())
    with scene(tmp_path, {**answers, 4: serves(4, FOUR)}, FOUR, THREE) as given:
        assert given.state.applied == set()


def test_a_server_that_finds_no_leader_by_its_file_is_part_of_the_state(tmp_path: Path) -> None:
    """1 led three servers, and restarted with the file of four: by it the three that serve, with 1, must be three."""
    answers = {1: LOOKING, 2: serves(2, THREE), 3: serves(3, THREE, "leader"), 4: None}
    with scene(tmp_path, answers, THREE, FOUR, (1,)) as given:
        state = given.state
        code, out, _ = given.asked()
    assert (state.applied, state.looking, state.leader) == ({1}, {1}, 3)
    answer = json.loads(out)
    assert answer["direct"]["condition"]["running"] == [2, 3]
    assert code in (0, 12, 13, 20)


@pytest.mark.parametrize("done", [(4,), (4, 1), (4, 1, 2, 3)], ids=["4 is started", "4 and 1", "all but 5"])
def test_the_plan_goes_on_where_it_was_interrupted(tmp_path: Path, done: tuple[Sid, ...]) -> None:
    """The plan for three to five starts 4, restarts 1, 2 and 3, and starts 5 at the end; it is proved at every step."""
    running = {sid: serves(sid, FIVE if sid in done else THREE, "leader" if sid == 3 else "follower") for sid in FOUR}
    with scene(tmp_path, {**running, 5: None}, THREE, FIVE, done) as given:
        code, out, _ = given.asked("--faults", 1)
    answer = json.loads(out)
    assert (code, answer["verdict"], answer["back"]["verdict"]) == (0, "safe", "safe")
    assert {order["steps"][-1]["server"] for order in answer["direct"]["orders"]} == {5}
    assert {answer["reason"] for answer in answer["direct"]["answers"] if answer["question"] == "commits"} == {
        "proved in order"
    }


# Refused states.

Answers = Mapping[Sid, Mapping[str, str] | None]
HERE = {sid: serves(sid, THREE, "leader" if sid == 3 else "follower") for sid in THREE}
UNFIT: dict[str, tuple[Answers, str]] = {
    "a server is down": (
        {**HERE, 1: None},
        "server 1 gives no answer: it cannot be reached: connection refused. Start it",
    ),
    "a server looks for a leader": ({**HERE, 1: LOOKING}, "server 1 runs and finds no leader, and its file does not"),
    "no server has a leader": (dict.fromkeys(THREE, LOOKING), "server 1 runs and finds no leader"),
    "only one server runs": ({1: LOOKING, 2: None, 3: None}, "this state: no-quorum. "),
    "two servers lead": (
        {**HERE, 1: serves(1, THREE, "leader")},
        "this state: two-leaders. Servers 1, 3 lead at the",
    ),
    "the leader is followed by no quorum": ({1: LOOKING, 2: LOOKING, 3: HERE[3]}, "server 1 runs and finds no leader"),
    "something else listens": ({**HERE, 1: {"conf": "HTTP/1.1 400", "srvr": "?"}}, "server 1 gives no answer: not an"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_state_that_must_be_mended_is_one_line_with_the_diagnosis(tmp_path: Path, name: str) -> None:
    answers, expected = UNFIT[name]
    with scene(tmp_path, {**answers, 4: None}, THREE, FOUR) as given:
        code, out, err = given.asked()
    assert (code, out, err.count("\n")) == (20, "", 1)
    assert expected in err and "`python -m checker diagnose " in err


def test_a_server_that_stays_stopped_is_named(tmp_path: Path) -> None:
    with scene(tmp_path, {**HERE, 1: None, 4: None}, THREE, FOUR) as given:
        assert given.asked("--down", 1)[0] != 20 or not given.asked("--down", 1)[2]
        assert "server 2 is in --down, and it runs" in given.asked("--down", "1,2")[2]


def test_a_server_that_states_nothing_is_not_seen(tmp_path: Path) -> None:
    silent = dict.fromkeys(("conf", "srvr"), f"conf {WHITELIST}")
    with scene(tmp_path, {**HERE, 1: silent, 4: None}, THREE, FOUR) as given:
        assert given.state.unseen == {1}


def test_a_restore_in_a_log_refuses_the_plan_whatever_the_servers_answer(tmp_path: Path) -> None:
    """Finding I: a restart undoes the restore, and equal zxids do not show equal data."""
    with scene(tmp_path, {**HERE, 4: None}, THREE, FOUR) as given:
        log = "2026-11-29 07:00:00,000 [myid:3] - INFO  - Restored to a new database. lastProcessedZxid=4294967300\n"
        (given.now / "3" / "zookeeper.log").write_text(log)
        with pytest.raises(UnfitStateError, match=r"restore-undone.*zookeeper\.log:1"):
            _ = given.state


# Incomplete inputs.


def test_a_silent_address_of_no_server_is_an_error(tmp_path: Path) -> None:
    expected = pytest.raises(ConfigError, match="no file says which server has this address")
    with scene(tmp_path, {**HERE, 4: None}, THREE, FOUR) as given, refusing() as other, expected:
        present_state([*given.inputs, other], given.old, given.new)


def test_a_server_that_runs_without_a_known_file_is_an_error(tmp_path: Path) -> None:
    with scene(tmp_path, {**HERE, 1: LOOKING, 4: LOOKING}, THREE, FOUR) as given, pytest.raises(ConfigError) as caught:
        present_state([*given.addresses.values()], given.old, given.new)
    assert [problem.what for problem in caught.value.problems] == [
        "there is no file of server 1, which runs before and after the roll-out",
        "there is no file of server 4, which runs now",
    ]


def test_a_manifest_is_no_evidence_of_what_runs(tmp_path: Path) -> None:
    (tmp_path / "now.yaml").write_text("apiVersion: apps/v1\nkind: StatefulSet\n")
    expected = pytest.raises(ConfigError, match="a manifest states what is to run, and not what runs")
    with scene(tmp_path, {}, THREE, FOUR) as given, expected:
        present_state([str(tmp_path / "now.yaml")], given.old, given.new)

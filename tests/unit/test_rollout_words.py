"""The words of an answer on a terminal: few of them, in short sentences, each idea once, and a story of what happens.

The inputs are those of operators who asked everyday questions (`tests/fixtures/operator`). A word is what stands
between spaces and has a letter or a digit; a command counts as its words. A sentence ends with a full stop, a colon, a
semicolon, a question mark or a line; in it a code span is one word.
"""

import re
import shutil
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from checker.rollout import Plan, PlanRequest, plan
from checker.rollout.disks import DiskHazard
from checker.rollout.files.differences import read_now
from checker.rollout.inputs.sources import read_input
from checker.rollout.orders import Way
from checker.rollout.output.data import write_stages
from checker.rollout.output.markdown import markdown
from checker.rollout.runs import Engine, Runner, RunResult
from checker.rollout.scenarios import Question, ReleaseChange, RunSpec
from spec.releases import release_named
from tests.support.rollout_runs import OPERATOR, fine, folder_of, unfinished

MOST_WORDS, LONGEST_SENTENCE = 300, 25


def words(text: str) -> list[str]:
    return [word for word in text.split() if re.search(r"\w", word)]


def sentences(text: str) -> Iterator[str]:
    """The sentences of a document, and the cells of its tables; not its blocks of code."""
    for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines():
        spans = re.sub(r"`[^`]*`", "code", re.sub(r"^\s*(-|\d+\.)\s", "", line))
        yield from spans.split("|") if line.startswith("|") else re.split(r"(?<=[.:;?])\**\s", spans)


def planned(old: str, new: str, run: Runner, now: str | None = None, **options: object) -> Plan:
    """The plan from one input of the operators to another."""
    inputs = read_input(str(OPERATOR / old)), read_input(str(OPERATOR / new))
    state = None if now is None else read_now(read_input(str(OPERATOR / now), together=False), *inputs)
    return plan(PlanRequest(*inputs, now=state, **options), run)  # type: ignore[arg-type]


answered = cache(planned)


def brief(made: Plan) -> str:
    return markdown(made, traces=False, evidence=False)


QUESTIONS: dict[str, tuple[str, ...]] = {
    "three to five": ("three", "five"),
    "five to three": ("five", "three"),
    "replaced": ("abc", "abd"),
    **{f"interrupted, {now}": ("three", "five", now) for now in ("nowA", "nowB", "nowC")},
    "TLS, the first step": ("tls0", "tls1"),
    "TLS, the second step": ("tls1", "tls2"),
    "TLS, the third step": ("tls2", "tls3"),
    "TLS in one go": ("tls0", "tls3"),
    "IP addresses": ("three", "ips"),
    "short names": ("three", "short"),
    "a secure port": ("sec3", "sec5"),
    "reconfig on": ("three", "reconfig"),
    "reconfig off": ("reconfig", "three"),
    "dynamic files": ("dyna", "dynb"),
    "manifests": ("rendered3.yaml", "rendered5.yaml"),
}


def check(text: str) -> None:
    assert len(words(text)) <= MOST_WORDS
    assert [sentence for sentence in sentences(text) if len(words(sentence)) > LONGEST_SENTENCE] == []


@pytest.mark.parametrize("run", [fine, unfinished])
@pytest.mark.parametrize("inputs", QUESTIONS.values(), ids=QUESTIONS)
def test_an_answer_is_short_on_a_terminal(inputs: tuple[str, ...], run: Runner) -> None:
    old, new, *now = inputs
    made = answered(old, new, run, *now)
    check(brief(made))
    shown, more, _ = brief(made).rpartition("\n\n`--explain` prints ")
    whole = markdown(made)
    assert more and whole.startswith(shown) and whole[len(shown) :].lstrip().startswith("<details>")


STORIES = {
    "two leaders": (
        ("three", "five"), {"order": (4, 5, 2, 1, 3), "leader": 2, "faults": 0},
        (
            "The operator starts servers 4 and 5 with their new files and stops server 2. Server 1 elects server 3. "
            "The operator starts server 2 with its new file. Server 2 and server 4 elect server 5. Now servers 3 and 5 "
            "lead at once, each with a quorum of its own file."
        ),
    ),
    "a lost write": (
        ("three", "five"), {"order": (4, 5, 1, 3, 2), "leader": 2, "faults": 0},
        (
            "A client writes 1 at server 2. Server 2 commits it, and answers the client that it is done. On disk it is "
            "at servers 2 and 3, not at servers 1, 4 and 5. The operator restarts server 3 with its new file and stops "
            "server 2. Server 1 and server 4 elect server 5. Server 3, with the write, is not heard in time. Server 5 "
            "leads without the write: it is lost."
        ),
    ),
    "an empty disk": (
        ("three", "three"), {"disks": {3: DiskHazard.EMPTY}, "leader": 3, "faults": 0},
        "Server 3 elects server 2. Server 1, with the write, is not heard in time. Server 2 leads without the write",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("inputs", "options", "told"), STORIES.values(), ids=STORIES)
def test_the_story_says_who_elects_whom_which_client_is_answered_and_what_is_lost(
    inputs: tuple[str, str], options: dict[str, object], told: str
) -> None:
    """R10, as real servers did it, and the loss of a disk: docs/explanation-zab.md."""
    text = brief(planned(*inputs, Engine().run, how=Way.ONE_BY_ONE, **options))
    check(text)
    assert told in text.partition("## What goes wrong\n")[2].partition("\n## ")[0]
    assert "are late" not in text


def test_every_leader_that_leads_now_has_its_order() -> None:
    """From three to five each of 1, 2 and 3 may lead now. A leader restarts last of the three, and 5 starts last."""
    text = brief(answered("three", "five", fine))
    assert "**Server 3 leads now**:" in text
    rows = [line for line in text.splitlines() if re.match(r"\| \d \|", line)]
    assert rows == ["| 2 | 4, 1, 3, 2, 5 |", "| 1 | 4, 2, 3, 1, 5 |"]


TITLES = {
    Way.ONE_BY_ONE: "# Restart the servers one by one, and keep",
    Way.NO_WAIT: "# Restart the servers one by one without waits, and keep",
    Way.STOP_ALL: "# Stop all servers, then start them with the new files, and keep",
}


@pytest.mark.parametrize(("way", "title"), TITLES.items(), ids=[way.value for way in TITLES])
def test_the_title_follows_the_way(way: Way, title: str) -> None:
    """The steps of `stop-all` stop every server before one starts: a title about single restarts would be another."""
    text = brief(planned("tls0", "tls1", fine, how=way))
    assert text.startswith(title)
    assert ("**Stop server 1**" in text) == (way is Way.STOP_ALL)


def test_an_upgrade_of_stopped_servers_is_not_one_server_after_the_other() -> None:
    change = ReleaseChange(release_named("3.8.4"), release_named("3.9.5"))
    made = planned("three", "three", fine, how=Way.STOP_ALL, releases=change)
    title = brief(made).partition("\n")[0]
    assert "with all servers stopped: stop 1, 2 and 3" in title and "one server after the other" not in title


def test_a_change_that_mixed_files_stop_has_a_way_without_mixed_files() -> None:
    """Servers with and without TLS refuse each other; if all are stopped in between, no two of them meet."""
    refused = brief(answered("tls0", "tls3", fine))
    assert "Or stop all servers, then start them with the new files: ask with `--how stop-all`." in refused
    stopped = planned("tls0", "tls3", fine, how=Way.STOP_ALL)
    text = brief(stopped)
    assert stopped.exit_code == 0 and text.startswith("# Stop all servers, then start them with the new files")
    assert "needs three roll-outs" not in text and "Or stop all" not in text


def test_no_reason_stands_twice() -> None:
    """A change that comes to a stop has its reason once: not in a heading, a note and a table."""
    text = brief(answered("tls0", "tls3", fine))
    assert text.count("refuse each other") == 1 and text.count("comes to a stop") == 2


@cache
def grown(sizes: tuple[int, int], run: Runner) -> Plan:
    """The plan from one size of an ensemble to another, from one file for all servers each."""
    with TemporaryDirectory() as name:
        folders = (folder_of(Path(name, str(size)), range(1, size + 1)) for size in sizes)
        return plan(PlanRequest(*folders), run)


SIZES = [(5, 6), (9, 10), (3, 7), (5, 7), (7, 8), (7, 3)]


@pytest.mark.parametrize(("sizes", "run"), [*product(SIZES, [fine]), *product(SIZES[:4], [unfinished])])
def test_a_larger_ensemble_has_a_short_answer_too(sizes: tuple[int, int], run: Runner) -> None:
    check(brief(grown(sizes, run)))


def test_stages_that_do_the_same_are_described_once() -> None:
    """From seven to three: each stage stops one server, and its row has the servers that stay stopped, and the file."""
    made = grown((7, 3), fine)
    text = brief(made)
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if re.match(r"\| \d \|", line)]
    assert [row[1:5] for row in rows] == [
        ["2", "4", "stop server 5", "`DIR/stage-2/N/zoo.cfg`, without `server.5`"],
        ["3", "4, 5", "stop server 6", "`DIR/stage-3/N/zoo.cfg`, without `server.6`"],
        ["4", "4, 5, 6", "stop server 7", f"`{Path(made.request.new.path, 'zoo.cfg')}`"],
    ]
    # By the file of stage 3 a quorum is three of 1, 2, 3 and 7. If 7 leads it stops first, and two are left.
    assert [row[5] for row in rows] == ["", "", "while server 1 is away, if server 7 leads"]
    assert "it restarts last" in text and "One that goes stops first if it leads." in text
    waits = re.findall(r"Wait: `serves zoo(\d) 2181`", text)
    assert sorted(waits) == ["1", "2", "3", "5", "6", "7"]


@pytest.mark.parametrize("inputs", [("five", "three"), ("abc", "abd")], ids=" to ".join)
def test_each_stage_names_the_file_of_each_server_and_the_file_exists(inputs: tuple[str, str], tmp_path: Path) -> None:
    """`--stages` writes the files of the first stage; those of the last one are the files of `--to`."""
    made = answered(*inputs, fine)
    write_stages(made, tmp_path)
    text = brief(made).partition("\n## If a step fails")[0]
    _, *stages = re.split(r"(?m)^### Stage \d$", text)
    assert len(stages) == 2
    for part, section in zip(made.stages, stages, strict=True):
        names = re.findall(r"`([^`\n]+\.cfg)`", section)
        if part.stage.new.given:
            assert set(names) == {given.origin for given in part.stage.new.servers.values()}
        paths = {
            sid: {Path(name.replace("DIR", str(tmp_path)).replace("/N/", f"/{sid}/")) for name in names}
            for sid in part.stage.new.members
        }
        members = [f"server.{sid}=" for sid in sorted(part.stage.new.members)]
        for named in paths.values():
            assert named
            for path in named:
                lines = path.read_text(encoding="utf-8").splitlines()
                assert [re.sub("=.*", "=", line) for line in lines if line.startswith("server.")] == members


def test_the_place_of_the_dynamic_file_stands_once_before_the_steps(tmp_path: Path) -> None:
    """A server reads its dynamic file where `dynamicConfigFile` says, and not beside its zoo.cfg."""
    made = answered("dynb", "dyna", fine)
    before, step, after = brief(made).partition("**Restart server 1**")
    assert step and before.count("`zoo.cfg.dynamic`") == before.count("`/etc/zk/zoo.cfg.dynamic`") == 1
    assert "dynamic" not in after
    write_stages(made, tmp_path)
    for name in ("zoo.cfg", "zoo.cfg.dynamic"):
        assert (tmp_path / "stage-1" / "1" / name).read_text() == (OPERATOR / "dyna" / "1" / name).read_text()
    assert "`zoo.cfg.dynamic`" not in brief(answered("three", "five", fine))


@pytest.mark.parametrize("folders", ["dataDir", "dataLogDir"])
def test_a_new_server_has_no_data_in_any_folder_that_its_file_names(folders: str, tmp_path: Path) -> None:
    """`QuorumPeerConfig.parseProperties`: `dataLogDir` has the log, and is `dataDir` where it is not set."""
    for name in ("three", "five"):
        shutil.copytree(OPERATOR / name, tmp_path / name)
    for file in tmp_path.rglob("zoo.cfg"):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        file.write_text("".join(line for line in lines if folders == "dataLogDir" or "dataLogDir" not in line))
    inputs = (read_input(str(tmp_path / name)) for name in ("three", "five"))
    text = brief(plan(PlanRequest(*inputs), fine))
    empty = ", and an empty `dataLogDir`" if folders == "dataLogDir" else ""
    assert f"A new server has only `dataDir/myid`, its number{empty}." in text


CHECKS = {
    ("three", "five"): ("serves()", "`Mode: leader`"),
    ("sec3", "sec5"): ("serves_by_http()", "`leader` in `server_state`"),
}


@pytest.mark.parametrize(("inputs", "named"), CHECKS.items())
def test_a_check_names_the_field_that_the_wait_reads(inputs: tuple[str, str], named: tuple[str, str]) -> None:
    """`srvr` prints `Mode:`; the AdminServer answers with `server_state` (`Commands.SrvrCommand`)."""
    text = brief(answered(*inputs, fine))
    function, field = named
    assert f"one of servers 1, 2 and 3 says {field}, and the others follow." in text
    (wait,) = (line for line in text.splitlines() if line.startswith(function))
    names = {name for name in ("Mode: ", "server_state") if name in wait}
    assert names == {name for name in ("Mode: ", "server_state") if name in field} and len(names) == 1


def test_an_answer_in_stages_with_the_reason_is_short() -> None:
    """One server is replaced by another in two stages, and a run says why not in one go."""
    made = planned("abc", "abd", Engine().run, seconds=10.0)
    text = brief(made)
    check(text)
    assert "## Why not in one go" in text and "### Stage 2" in text


def test_an_answer_about_a_release_is_short() -> None:
    """From three to five with 3.8.4: its defects lose a write, which the engine finds. No other run is explored."""

    def run(spec: RunSpec, seconds: float) -> RunResult:
        is_asked = spec.question is Question.DEFECTS and spec.releases is not None
        return Engine().run(spec, seconds) if is_asked else fine(spec, seconds)

    release = release_named("3.8.4")
    made = planned("three", "five", run, releases=ReleaseChange(release, release))
    text = brief(made)
    check(text)
    assert made.exit_code == 12 and "Let nothing be written meanwhile" in text and "a write can be lost" in text


def test_the_way_back_stops_the_service_where_it_turns_reconfig_off() -> None:
    """Real 3.9.5, in 2 of 2 runs: a server that loses `reconfigEnabled` finds no leader among those that have it."""
    text = brief(answered("three", "reconfig", fine))
    assert "**No way back by single restarts**" in text
    assert "undo the steps backwards with the old files: the service stops." in text
    assert "No way back" not in brief(answered("tls0", "tls1", fine))


def test_a_stage_is_undone_with_the_files_from_before_it() -> None:
    """The files of the old folder, in stage 2, would be the change of two stages in one go (R10)."""
    text = brief(answered("five", "three", fine))
    assert "### Stage 2" in text and "the old files" not in text
    assert "Or undo this stage backwards, with the files from before it" in text


def test_a_gate_that_does_not_pass_says_so() -> None:
    """Exit code 22 with a positive headline would be a riddle."""
    made = planned("three", "five", unfinished, in_one_go=True)
    assert made.exit_code == 22 and "**The gate does not pass**" in brief(made)
    assert "Name a safe way: `--how one-by-one`." in brief(made)
    named = planned("three", "five", unfinished, in_one_go=True, how=Way.ONE_BY_ONE)
    assert named.exit_code == 0 and "The gate" not in brief(named)

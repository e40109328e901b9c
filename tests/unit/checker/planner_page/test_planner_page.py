"""The planner's page: HTTP on the loopback interface, the files it takes, its errors, and the answer as HTML."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checker.cli.main import main
from checker.local_page import BadRequestError
from checker.planner_page import (
    BUSY,
    FIELDS,
    LARGEST_SETS,
    PlanFilesRequest,
    PlannerHandlers,
    PlannerServer,
    UploadedFile,
    read_options,
    read_question,
    to_html,
)
from checker.rollout import PlanRequest
from checker.rollout.disks import DiskHazard
from checker.rollout.orders import Way
from checker.rollout.output.cache import AnswerCache
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict
from checker.rollout.scenarios import ReleaseChange, RunSpec
from tests.support.rollout_runs import FOLDERS

ENOUGH = 60.0


def sent(folder: str) -> list[dict[str, str]]:
    root = FOLDERS / folder
    return [{"name": each.name, "text": each.read_text()} for each in sorted(root.iterdir())]


def request(
    before: dict[str, str], after: dict[str, str], now: dict[str, str] | None = None, **options: str
) -> PlanFilesRequest:
    sets = (tuple(UploadedFile(name, text) for name, text in each.items()) for each in (before, after, now or {}))
    return PlanFilesRequest(*sets, tuple((name.replace("_", "-"), value) for name, value in options.items()))


def asked(given: PlanFilesRequest) -> PlanRequest:
    return read_question(given, read_options(given))


def of_folders(before: str, after: str) -> PlanFilesRequest:
    old, new = ({each["name"]: each["text"] for each in sent(folder)} for folder in (before, after))
    return request(old, new)


def exhausted(spec: RunSpec, seconds: float) -> RunResult:
    """Return a made-up run, which takes no time."""
    return RunResult(spec, SafetyVerdict.SAFE, RunEnd.EXHAUSTED, 100, 10, 1.0, (), spec.name)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PlannerServer]:
    with PlannerServer(PlannerHandlers(AnswerCache(tmp_path), exhausted)) as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def ask(server: PlannerServer, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
    """Send one request like those of the page, except for the given headers: status, headers and body."""
    whole = {"Host": f"127.0.0.1:{server.server_port}", "Content-Type": "application/json"}
    whole |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=ENOUGH)
    connection.request(method, path, None if body is None else json.dumps(body), whole)
    got = connection.getresponse()
    answer = got.status, got.headers, got.read().decode()
    connection.close()
    return answer


def test_the_page_and_its_files_obey_the_rules_of_local_pages(server: PlannerServer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert {"/", "/app.js", "/fields.js", "/server.js", "/sets.js", "/dom.js", "/style.css", "/picture.css"} <= set(
        server.assets
    )
    for path in server.assets:
        status, headers, text = ask(server, "GET", path)
        assert status == 200 and "unsafe" not in headers["Content-Security-Policy"]
        assert "<style" not in text and "onclick=" not in text
    assert ask(server, "GET", "/../server.py")[0] == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Length": str(LARGEST_SETS + 1)}, 413),
    ],
)
def test_a_request_of_another_page_or_of_no_size_is_refused(
    server: PlannerServer, headers: dict[str, str], status: int
) -> None:
    body = None if "Content_Length" in headers else {"before": sent("three"), "after": sent("four")}
    got, _, text = ask(server, "POST", "/api/plan", body, **headers)
    assert got == status and json.loads(text)["error"]


def test_nothing_else_is_asked_for(server: PlannerServer) -> None:
    assert ask(server, "POST", "/api/walk", {})[0] == 404
    assert ask(server, "GET", "/api/plan")[0] == 404
    assert ask(server, "POST", "/api/plan", {"before": []})[0] == 400
    assert ask(server, "GET", "/api/jobs")[0] == 404


def test_a_change_is_judged_with_progress_and_the_second_answer_is_kept(server: PlannerServer) -> None:
    body = {"before": sent("three"), "after": sent("four")}
    *progress, last = [json.loads(line) for line in ask(server, "POST", "/api/plan", body)[2].splitlines()]
    runs = [each["progress"]["runs"] for each in progress]
    assert runs == sorted(runs) and set(runs) == set(range(max(runs) + 1))
    done = last["done"]
    assert done["verdict"] == "safe" and not done["kept"]
    assert done["html"].startswith("<h1>Add server 4 ") and done["markdown"].startswith("# Add server 4 ")
    assert done["command"] == "python -m checker rollout --from=before --to=after"
    assert "quorate-" not in done["markdown"], "the temporary folder has no place in an answer"
    (again,) = [json.loads(line) for line in ask(server, "POST", "/api/plan", body)[2].splitlines()]
    assert again["done"] == {**done, "kept": True}


def test_an_uploaded_file_leads_to_no_file_of_this_machine(tmp_path: Path) -> None:
    """The message repeats what a myid has if that is no number."""
    (tmp_path / "myid").write_text("a secret text")
    for directory in (f"../../../../../../..{tmp_path}", str(tmp_path)):
        for name in ("zoo.cfg", "any/zoo.cfg"):
            with pytest.raises(BadRequestError) as caught:
                asked(request({name: f"dataDir={directory}\n", "x.txt": ""}, {"zoo-1.cfg": "dataDir=/d\n"}))
            assert "a secret text" not in str(caught.value)


def test_one_change_is_judged_at_a_time_and_a_page_that_has_gone_ends_its_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("checker.planner_page.OFTEN", ENOUGH)
    handlers = PlannerHandlers(AnswerCache(None), exhausted)
    busy: list[str] = []

    def another(_: object) -> bool:
        with pytest.raises(BadRequestError) as error:
            handlers.plan(of_folders("three", "five"), lambda _: True)
        busy.append(str(error.value))
        return False

    with pytest.raises(BadRequestError, match="the question was cancelled"):
        handlers.plan(of_folders("three", "four"), another)
    assert busy == [BUSY]
    assert handlers.plan(of_folders("three", "four"), lambda _: True)["verdict"] == "safe", "the place is free again"


def test_a_page_that_has_gone_ends_the_work_between_runs() -> None:
    def never(spec: RunSpec, seconds: float) -> RunResult:
        raise AssertionError("the orders and the stages come before the first run")

    many = "".join(f"server.{sid}=zk{sid}:2888:3888\n" for sid in range(1, 256))
    question = request({"zoo.cfg": f"dataDir=/data\n{LINES}"}, {"zoo.cfg": f"dataDir=/data\n{many}"})
    with pytest.raises(BadRequestError, match="the question was cancelled"):
        PlannerHandlers(AnswerCache(None), never).plan(question, lambda _: False)


LINES = "".join(f"server.{sid}=zk{sid}:2888:3888\n" for sid in (1, 2, 3))


def test_a_mistake_in_a_file_is_the_planners_own_error() -> None:
    good = f"dataDir=/data\n{LINES}"
    with pytest.raises(BadRequestError) as error:
        asked(request({"zoo.cfg": good}, {"zoo.cfg": good.replace("zk2:2888", "zk2:x")}))
    assert str(error.value).startswith("after/zoo.cfg:3: ") and "; " in str(error.value)


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ({}, "there are no files before the change"),
        ({"../zoo.cfg": LINES}, "is not a name for a file here; write letters"),
        ({"/etc/zoo.cfg": LINES}, "is not a name for a file here"),
        ({"a/./zoo.cfg": LINES}, "is not a name for a file here"),
        ({"a\nb": LINES}, "is not a name for a file here"),
        ({"a": LINES, "a/b": LINES}, "a file and a folder have this name"),
    ],
)
def test_files_that_cannot_be_a_set_are_refused(before: dict[str, str], why: str) -> None:
    with pytest.raises(BadRequestError, match=why) as error:
        asked(request(before, {"zoo.cfg": LINES}))
    assert error.value.field == "before"


def test_two_files_of_one_name_are_refused() -> None:
    twice = (UploadedFile("zoo.cfg", LINES),) * 2
    with pytest.raises(BadRequestError, match=r"two files have the name zoo\.cfg; choose the folder"):
        asked(PlanFilesRequest(twice, twice))


def test_the_same_files_are_the_same_question_and_folders_of_servers_are_read() -> None:
    files = {f"{sid}/zoo.cfg": f"dataDir=/data\n{LINES}" for sid in (1, 2, 3)}
    question = asked(request(files, files))
    assert question == asked(request(files, files))
    old, new = question.old, question.new
    assert old.path == "before" and sorted(new.servers) == [1, 2, 3]
    assert [each.origin for each in old.servers.values()] == [f"before/{sid}/zoo.cfg" for sid in (1, 2, 3)]


FOUR = {f"{sid}/zoo.cfg": f"dataDir=/data\n{LINES}server.4=zk4:2888:3888\n" for sid in (1, 2, 3, 4)}
THREE = {f"{sid}/zoo.cfg": f"dataDir=/data\n{LINES}" for sid in (1, 2, 3)}


def test_the_fields_are_options_of_the_command_with_its_choices(server: PlannerServer) -> None:
    given = {each["name"]: each for each in json.loads(ask(server, "GET", "/api/fields")[2])}
    assert list(given) == list(FIELDS) and all(each["label"] and each["help"] for each in given.values())
    assert {name for name, each in given.items() if each["switch"]} == {"same-machines", "in-one-go", "explore"}
    assert {name for name, each in given.items() if each["repeated"]} == {"disk"}
    assert {value for value, _ in given["how"]["choices"]} == {"", *(way.value for way in Way)}
    assert [value for value, _ in given["files"]["choices"]] == ["", "at-step"]


def test_the_options_of_a_question_are_those_of_the_command() -> None:
    question = asked(
        request(THREE, FOUR, leader="2", faults="2", down="3", disk="4=empty", budget="5m", release="3.8.4")
    )
    assert (question.leader, question.faults, question.down, question.seconds) == (2, 2, frozenset({3}), 300.0)
    assert question.disks == {4: DiskHazard("empty")} and question.explored and not question.in_one_go
    assert isinstance(question.releases, ReleaseChange) and not question.releases.is_upgrade
    assert question.order is None and not question.at_step and question.how is None
    question = asked(request(THREE, FOUR, order="4,3,2,1", how="parallel", files="at-step", in_one_go=""))
    assert (question.order, question.how, question.at_step, question.in_one_go) == (
        (4, 3, 2, 1),
        Way.PARALLEL,
        True,
        True,
    )


def test_an_interrupted_roll_out_has_a_third_set_of_files() -> None:
    now = {"1/zoo.cfg": FOUR["1/zoo.cfg"], "2/zoo.cfg": THREE["2/zoo.cfg"], "3/zoo.cfg": THREE["3/zoo.cfg"]}
    question = request(THREE, FOUR, now)
    interruption = asked(question).now
    assert interruption is not None and interruption.path == "now" and interruption.applied == {1}
    assert question.command == "python -m checker rollout --from=before --to=after --now=now"
    with pytest.raises(BadRequestError, match=r"^now/1/zoo\.cfg: the file of server 1 is not the one in") as error:
        asked(request(THREE, FOUR, {**now, "1/zoo.cfg": FOUR["1/zoo.cfg"].replace("/data", "/other")}))
    assert error.value.field == "now"


@pytest.mark.parametrize(
    ("options", "field", "why"),
    [
        ({"leader": "two"}, "leader", "'two' is not the id of one server"),
        ({"leader": "9"}, "leader", "server 9 cannot lead at first"),
        ({"how": "fast"}, "how", "invalid choice: 'fast'"),
        ({"how": "stop-all", "order": "4,1,2,3"}, "how", "fixes its order"),
        ({"down": "7"}, "down", "server 7 is in neither folder"),
        ({"down": "1,2"}, "down", "has no quorum"),
        ({"disk": "4=wet"}, "disk", "'4=wet' is not a disk of a server"),
        ({"disk": "9=empty"}, "disk", "server 9, which is in neither folder"),
        ({"disk": "1=empty", "down": "1"}, "disk", "server 1 is in --down"),
        ({"release": "4"}, "release", "the release '4' is not in the table"),
        ({"to-release": "3.9.5"}, "to-release", "needs --release"),
        ({"release": "3.8.4", "to-release": "3.9.5"}, "to-release", "make two roll-outs"),
        ({"order": "4,4,1,2,3"}, "order", "server 4 is there twice"),
        ({"faults": "9"}, "faults", "not a whole number from 0 to 3"),
        ({"budget": "soon"}, "budget", "'soon' is not a time"),
        ({"files": "at-step", "how": "controller"}, "files", "a controller has all new files"),
        ({"in-one-go": "yes"}, "in-one-go", "ignored explicit argument 'yes'"),
    ],
)
def test_an_error_names_the_field_that_it_is_about(options: dict[str, str], field: str, why: str) -> None:
    with pytest.raises(BadRequestError, match=why) as error:
        PlannerHandlers(AnswerCache(None), exhausted).plan(request(THREE, FOUR, **options), lambda _: True)
    assert error.value.field == field


@pytest.mark.parametrize("name", ["from", "to", "output", "traces", "scenarios", "stages", "help", "h", "json"])
def test_no_option_that_names_a_file_is_taken(name: str) -> None:
    with pytest.raises(BadRequestError, match=f"the page has no field '{name}'"):
        asked(request(THREE, FOUR, **{name: "/dev/null"}))


def test_a_mistake_in_a_file_is_told_beside_its_set(server: PlannerServer) -> None:
    bad = [{"name": "zoo.cfg", "text": LINES.replace("zk2:2888", "zk2:x")}]
    body = {"before": sent("three"), "after": bad, "options": []}
    told = json.loads(ask(server, "POST", "/api/plan", body)[2])
    assert told["field"] == "after" and told["error"].startswith("after/zoo.cfg:2: ")


def test_no_text_of_a_file_turns_into_markup_of_the_answer() -> None:
    """A host, a value, an unknown key, and the name of a file hold markup, or are refused."""
    script = "<script>alert(1)</script>"
    old = f"dataDir=/data\nqqx=1\n{LINES}"
    texts = {
        "value": old.replace("qqx=1", f"qqx={script}"),
        "key": old.replace("qqx=1", f"qqx{script.replace('(1)', '')}=1"),
        "host": old.replace("zk3", f"zk{script}"),
        "path": old.replace("/data", f"/{script}"),
    }
    handlers = PlannerHandlers(AnswerCache(None), exhausted)
    answered = set()
    for place, text in texts.items():
        try:
            html = str(handlers.plan(request({"zoo.cfg": old}, {"zoo.cfg": text}), lambda _: True)["html"])
        except BadRequestError as error:  # the page shows it as text
            assert "script" in str(error), place
            continue
        assert "<script" not in html and "script" in html, place
        answered.add(place)
    assert answered >= {"value", "key"}
    with pytest.raises(BadRequestError, match="is not a name for a file here"):
        asked(request({f"{script}.cfg": old}, {"zoo.cfg": old}))


def test_the_document_has_pictures_and_folds_and_no_markup_of_others() -> None:
    text = "# A\n\n<script>x</script>\n\n```mermaid\na\n```\n\n<details>\n<summary>B &lt;b&gt;</summary>\n\n"
    text += "```text\n<details>\n```\n\n| a | b |\n| --- | ---: |\n| ![x](http://evil.example) | 1 |\n\n</details>\n"
    html = to_html(text, ["<svg></svg>"])
    assert "&lt;script&gt;" in html and "<script" not in html and "<img" not in html and "style=" not in html
    assert "<svg></svg></figure>" in html
    assert html.count("<details>") == html.count("</details>") == 1 and "&lt;details&gt;" in html
    assert "<summary>B &lt;b&gt;</summary>" in html and '<td class="number">1</td>' in html


def test_the_command_refuses_a_port_that_is_taken(server: PlannerServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--port", str(server.server_port), "--no-browser"]) == 2
    assert f"--port {server.server_port}: it cannot be had" in capsys.readouterr().err


def test_a_dynamic_file_outside_of_the_uploaded_ones_is_not_read(tmp_path: Path) -> None:
    """The page reads what is dropped on it, and nothing else of the machine."""
    (tmp_path / "secret").write_text("server.1=zk1:2888:3888;2181\n", encoding="utf-8")
    up = "../" * 12 + str(tmp_path / "secret").lstrip("/")
    text = f"dataDir=/data\ntickTime=2000\ndynamicConfigFile={up}\n"
    given = (UploadedFile("zoo.cfg", text),)
    with pytest.raises(BadRequestError, match="no such file"):
        asked(PlanFilesRequest(given, given))

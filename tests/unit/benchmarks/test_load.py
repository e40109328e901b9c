"""The load generator: every answer is checked, latencies are per request, and the table names its basis."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks.node import command as node_command
from benchmarks.node.command import HEADINGS, as_json, as_text
from benchmarks.node.load import Run, RunVoid, drive, latencies, session
from benchmarks.node.measure import Case, Figures, Report, Row, serve, stub
from benchmarks.node.requests import OPERATIONS, Batch, answers, batch, opening, request
from benchmarks.outcome import Missed
from harness.layouts import read, read_answer
from harness.processes import free_ports


@contextmanager
def answering(data: bytes) -> Iterator[int]:
    """A server that answers the connect request, then sends these bytes and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(len(opening()), socket.MSG_WAITALL)
                connection.sendall((37).to_bytes(4, "big") + bytes(37))
                connection.recv(1)
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass

        thread = threading.Thread(target=run)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)


def frames(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        found.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return found


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_batch_is_the_requests_one_by_one(operation: str) -> None:
    asked = batch(operation, 12, "/parent")

    found = frames(asked.data)

    assert len(found) == 12
    assert {len(frame) + 4 for frame in found} == {asked.size}
    assert [int.from_bytes(frame[:4], "big") for frame in found] == list(range(1, 13))
    path, *_ = read("s", found[11], 8)[0]
    assert path == ("/parent/00000011" if operation == "create" else "/parent")
    opcode = int.from_bytes(found[3][4:8], "big")
    fields = {"create": ("/parent/00000003", b"x" * 100, ((31, "world", "anyone"),), 0)}
    fields |= {"set": ("/parent", b"x" * 100, -1), "get": ("/parent", False)}
    assert request(4, opcode, *fields[operation])[4:] == found[3]


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("create", (16).to_bytes(4, "big") + b"/parent/00000000"),
        ("set", bytes(68)),
        ("get", (100).to_bytes(4, "big") + b"x" * 100 + bytes(68)),
    ],
)
def test_the_size_of_an_answer_is_that_of_a_real_one(operation: str, body: bytes) -> None:
    opcode = {"create": 1, "set": 5, "get": 4}[operation]

    assert read_answer(opcode, body)
    assert batch(operation, 1, "/parent").answer_size == 4 + 16 + len(body)


def test_an_unknown_operation_is_named() -> None:
    with pytest.raises(ValueError, match="no operation is called 'sync'; there are create, set, get"):
        batch("sync", 1, "/parent")


@pytest.mark.parametrize("outstanding", [1, 50])
def test_a_run_against_the_stub_counts_every_answer(outstanding: int) -> None:
    asked = batch("set", 300, "/parent")
    with stub(asked) as port, session(port) as connection:
        run = drive(connection, asked, outstanding)

    assert run.count == len(run.latencies) == 300
    assert (run.latencies > 0).all()
    assert run.rate == pytest.approx(300 / run.seconds)


def test_no_more_than_the_window_is_outstanding() -> None:
    asked = batch("get", 200, "/parent")
    seen: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(len(opening()), socket.MSG_WAITALL)
                connection.sendall((37).to_bytes(4, "big") + bytes(37))
                prepared, arrived = answers(asked), 0
                for answered in range(200):
                    while arrived < (answered + 1) * asked.size:
                        arrived += len(connection.recv(1 << 16))
                    seen.append(arrived // asked.size - answered)
                    size = asked.answer_size
                    connection.sendall(prepared[answered * size : (answered + 1) * size])

        thread = threading.Thread(target=run)
        thread.start()
        with session(listener.getsockname()[1]) as connection:
            drive(connection, asked, 7)
        thread.join(10)

    assert max(seen) == 7


def changed(asked: Batch, index: int, at: int, value: int) -> bytes:
    data = bytearray(answers(asked))
    start = index * asked.answer_size + at
    data[start : start + 4] = value.to_bytes(4, "big", signed=True)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (changed(batch("set", 9, "/p"), 4, 16, -101), "set: answer 5 of 9 has xid 5 and error -101"),
        (changed(batch("set", 9, "/p"), 2, 4, 8), "set: answer 3 of 9 has xid 8 and error 0"),
        (answers(batch("set", 9, "/p"))[: 6 * 88], "set: 6 of 9 answers came"),
        (b"", "set: 0 of 9 answers came"),
        (answers(batch("set", 9, "/p"))[:88] + (16).to_bytes(4, "big") + bytes(3) + b"\x02" + bytes(8) + b"\xff" * 4,
         "set: answer 2 of 9 has xid 2 and error -1"),
    ],
    ids=["an error", "another xid", "too few", "none", "a short answer"],
)  # fmt: skip
def test_a_wrong_answer_makes_the_run_void(data: bytes, said: str) -> None:
    asked = batch("set", 9, "/p")
    with answering(data) as port, session(port) as connection, pytest.raises(RunVoid) as void:
        drive(connection, asked, 3)

    assert said in str(void.value)


def test_a_server_that_is_not_there_is_named() -> None:
    (port,) = free_ports(1)

    with pytest.raises(RunVoid, match=f"no session at 127.0.0.1:{port}"), session(port):
        pass


def test_latency_is_counted_from_the_sending_of_each_request() -> None:
    found = latencies([(0.0, 2), (1.0, 3), (4.0, 4)], [(1.0, 1), (4.0, 2), (6.0, 4)])

    assert found.tolist() == [1.0, 4.0, 5.0, 2.0]


def test_percentiles_are_of_requests() -> None:
    run = Run(100, 2.0, np.arange(1, 101) / 1000)

    assert run.rate == 50.0
    assert run.percentile(50) == pytest.approx(0.0505)


def test_the_stub_ends_when_its_listener_is_closed() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.close()

    serve(listener, batch("get", 1, "/p"))


FAST = Figures([90_000.0, 100_000.0, 110_000.0], [0.0001] * 3, [0.0002] * 3)  # nothing is known of its processor
REAL = Figures(
    [15_000.0, 10_000.0, 20_000.0], [0.003, 0.002, 0.004], [0.006, 0.005, 0.007], [0.00007, 0.00006, 0.00008]
)
NODE = Figures([20_000.0, 30_000.0, 60_000.0], [0.001] * 3, [0.002] * 3, [0.00003] * 3)
CASE = Case("set", 50, 3, 20_000)


def report(*rows: Row, missed: tuple[Missed, ...] = ()) -> Report:
    return Report(list(rows), list(missed), rounds=3, quick=False, fsync=0.00123)


def test_the_table_shows_medians_and_their_ratio() -> None:
    lines = as_text(report(Row(CASE, FAST, {"real": REAL, "node": NODE}))).splitlines()

    assert lines[0].split("  ")[0].strip() == HEADINGS[0]
    assert lines[1].split() == [
        *("set", "50", "3", "15,000", "30,000", "2.00"),
        *("3.000", "1.000", "6.000", "2.000", "70", "30", "100,000", "3.33"),
    ]
    assert lines[2:] == [
        "real: 3.8.0; medians of 3 rounds, kinds in turn; values of 100 bytes; fsync on, one takes 1.23 ms on this disk"
    ]


def test_a_figure_that_the_generator_bounds_says_so() -> None:
    slow = Figures([45_000.0], [0.001], [0.002])

    text = as_text(report(Row(CASE, slow, {"node": NODE})))

    assert "set, 50 outstanding, 3 servers: bounded by the load generator, which is only 1.5 times as fast" in text


def test_a_kind_without_figures_leaves_dashes_and_its_reason() -> None:
    text = as_text(report(Row(CASE, FAST, {"node": NODE}), missed=(Missed("real", "no java on the PATH"),)))

    assert text.splitlines()[1].split()[3:6] == ["-", "30,000", "-"]
    assert text.splitlines()[-1] == "real: not measured: no java on the PATH"


def test_json_holds_every_round() -> None:
    whole = json.loads(as_json(report(Row(CASE, FAST, {"real": REAL, "node": NODE}))))

    (row,) = whole["rows"]
    assert row["kinds"]["real"]["rates"] == REAL.rates
    assert row["kinds"]["node"]["median_p99"] == 0.002
    assert (row["ratio"], row["operation"], row["servers"]) == (2.0, "set", 3)
    assert (whole["rounds"], whole["missed"]) == (3, [])


def test_the_subcommand_gets_the_rest_of_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(node_command, "main", lambda argv: given.append(argv) or 0)

    assert command.main(["node", "--rounds", "2"]) == 0
    assert given == [["--rounds", "2"]]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--rounds", "0"], "'0' is not a whole number from 1 to"),
        (["--rounds", "x"], "'x' is not a whole number from 1 to"),
        (["--directory", "/nowhere"], "the directory does not exist"),
        (["--only", "other"], "invalid choice: 'other'"),
    ],
)
def test_a_bad_command_line_is_named(line: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        node_command.main(line)

    assert end.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("missed", "code"), [((), 0), ((Missed("real", "no java on the PATH"),), 1)])
def test_the_exit_code_says_whether_every_figure_was_measured(
    missed: tuple[Missed, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = report(Row(CASE, FAST, {"node": NODE}), missed=missed)
    monkeypatch.setattr(node_command, "measure", lambda *_: found)

    assert node_command.main(["--json", "--measure", "load"]) == code
    assert json.loads(capsys.readouterr().out)["missed"] == list(map(vars, missed))

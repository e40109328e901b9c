"""Histories of registers in EDN: which texts are equal values, what is refused, and the verdict on random histories.

Expected verdicts come from an enumeration of all orders. Of the 120 files in data/cas-register of jepsen-io/knossos,
whose folders name the verdict, the command answers 12 for the 7 bad ones, and 0 or 21 for the 113 good ones.
"""

import random
from itertools import combinations, permutations
from pathlib import Path

import pytest

from checker.histories import ClientHistoryError, report_of

Entry = tuple[int, str, str, str]
"""An entry: process, type, function, value."""


def judged(folder: Path, text: str) -> tuple[int, str]:
    file = folder / "history.edn"
    file.write_text(text, encoding="utf-8")
    report = report_of([file])
    return int(report.exit_code), report.text


def edn(entries: list[Entry]) -> str:
    return "\n".join(f"{{:process {p}, :type :{t}, :f :{f}, :value {v}}}" for p, t, f, v in entries)


def wrote_and_read(written: str, read: str) -> str:
    return edn([(0, "invoke", "write", written), (0, "ok", "write", written), (1, "invoke", "read", "nil")]) + edn(
        [(1, "ok", "read", read)]
    )


def drawn(seed: int) -> list[Entry]:
    """Return a history of seven operations of three processes on a register, answered correctly or at random."""
    choose = random.Random(seed)
    honest = choose.random() < 0.6
    state = "nil"
    entries: list[Entry] = []
    running: dict[int, tuple[str, str]] = {}
    begun, process = 0, 3
    while begun < 7 or running:
        client = choose.randrange(3)
        if client not in running and begun < 7:
            function = choose.choice(("read", "write", "cas"))
            a, b = choose.choice("12"), choose.choice("12")
            running[client] = function, {"read": "nil", "write": a, "cas": f"[{a} {b}]"}[function]
            entries.append((client, "invoke", *running[client]))
            begun += 1
        elif client in running:
            function, value = running.pop(client)
            process += 1
            effect = value if function == "write" else value[3] if value[1:2] == state else None
            happens = choose.random() < (0.9 if effect else 0)
            state = effect if happens and effect and function != "read" else state
            kind = "ok" if happens or function == "read" else choose.choice(("fail", "info"))
            kind = kind if honest else choose.choice(("ok", "ok", "fail", "info"))
            answer = (state if honest else choose.choice("12")) if function == "read" and kind == "ok" else value
            entries.append((client, kind, function, answer))
    return entries


def explained(entries: list[Entry]) -> bool:
    """Whether some order of what happened, and of some of what may have happened, explains every answer."""
    calls: list[tuple[str, str, float, float]] = []
    pending: dict[int, tuple[int, str, str]] = {}
    for place, (process, kind, function, value) in enumerate(entries):
        if kind == "invoke":
            pending[process] = place, function, value
        else:
            begin, _, asked = pending.pop(process)
            if kind == "ok":
                calls.append((function, value, begin, place))
            elif kind == "info" and function != "read":
                calls.append((function, asked, begin, float("inf")))
    sure = [call for call in calls if call[3] < float("inf")]
    maybe = [call for call in calls if call[3] == float("inf")]
    subsets = [chosen for size in range(len(maybe) + 1) for chosen in combinations(maybe, size)]
    return any(replays(order) for chosen in subsets for order in permutations([*sure, *chosen]))


def replays(order: tuple[tuple[str, str, float, float], ...]) -> bool:
    state, latest = "nil", -1.0
    for function, value, begin, end in order:
        if latest > end:
            return False
        latest = max(latest, begin)
        if function == "read" and value != state:
            return False
        if function == "cas" and value[1:2] != state:
            return False
        state = state if function == "read" else value if function == "write" else value[3]
    return True


def test_the_verdict_agrees_with_trying_every_order(tmp_path: Path) -> None:
    histories = {seed: drawn(seed) for seed in range(250)}
    answered = {seed: entries for seed, entries in histories.items() if any(kind == "ok" for _, kind, _, _ in entries)}
    expected = {seed: 0 if explained(entries) else 12 for seed, entries in answered.items()}

    assert {seed: judged(tmp_path, edn(entries))[0] for seed, entries in answered.items()} == expected
    assert 30 < sum(code == 12 for code in expected.values()) < 200


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("1", "+1N"),
        ("0", "-0"),
        ('"a\\u0062"', '"ab"'),
        ("[1 (2 3)]", "(1, [2 3] ; a remark\n)"),
        ("#{1 2}", "#{2 1}"),
        ("{:a 1 :b 2}", "{:b 2, :a 1}"),
        ("#_ 5 7", "7 #_ #_ 1 2"),
        (":key", ":key"),
        ("\\newline", "\\newline"),
        ('#uuid "x"', '#uuid "x"'),
    ],
)
def test_equal_values_are_one_value(tmp_path: Path, written: str, read: str) -> None:
    assert judged(tmp_path, wrote_and_read(written, read))[0] == 0


@pytest.mark.parametrize(
    ("written", "read"),
    [("1", "true"), ("1", "1.0"), ("1", '"1"'), ("a", ":a"), ("[1 2]", "[12]"), ("{1 2}", "#{1 2}"), ("1", "nil")],
)
def test_other_values_are_other_values(tmp_path: Path, written: str, read: str) -> None:
    code, text = judged(tmp_path, wrote_and_read(written, read))
    assert code == 12
    assert f"process 1: read -> {read} [entries 2, 3]" in text


def test_independent_keys_are_registers_of_their_own(tmp_path: Path) -> None:
    keyed = [
        (0, "invoke", "write", "[:x 1]"),
        (0, "ok", "write", "[:x 1]"),
        (1, "invoke", "cas", "[:x [1 2]]"),
        (1, "ok", "cas", "[:x [1 2]]"),
        (0, "invoke", "read", "[:y nil]"),
        (0, "ok", "read", "[:y nil]"),
    ]
    nemesis = '{:process :nemesis, :type :info, :f :start, :value "cut"}'
    assert judged(tmp_path, f"[{edn(keyed)}\n{nemesis}]")[0] == 0
    code, text = judged(tmp_path, edn([*keyed[:4], (0, "invoke", "read", "[:x nil]"), (0, "ok", "read", "[:x 1]")]))
    assert code == 12
    assert ":x: no order of the operations explains this answer" in text


@pytest.mark.parametrize("asked", [[], ["write"]])
def test_a_cas_of_pairs_of_pairs_needs_a_read_that_tells_keys_from_vectors(tmp_path: Path, asked: list[str]) -> None:
    """The register [1 2] -> [3 4], or the register of the key [1 2] from 3 to 4: they have different verdicts."""
    written = [(0, kind, f, "[1 2]") for f in asked for kind in ("invoke", "ok")]
    swapped = [(0, kind, "cas", "[[1 2] [3 4]]") for kind in ("invoke", "ok")]
    with pytest.raises(ClientHistoryError, match=r"edn:1: .* there is no :read to tell"):
        judged(tmp_path, edn([*written, *swapped]))

    def read(*values: str) -> list[Entry]:
        return [(0, kind, "read", value) for kind, value in zip(("invoke", "ok"), values, strict=True)]

    assert judged(tmp_path, edn([*written, *swapped, *read("nil", "[3 4]")]))[0] == (0 if asked else 12)
    assert judged(tmp_path, edn([*written, *swapped, *read("[1 nil]", "[1 2]")]))[0] == 12


def test_a_history_without_an_answer_is_vacuous(tmp_path: Path) -> None:
    assert judged(tmp_path, edn([(0, "invoke", "write", "1"), (0, "info", "write", "1")]))[0] == 21

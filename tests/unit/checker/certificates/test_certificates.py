"""Certificates: sound steps are accepted, forged ones are rejected with the reason, and the checker stands alone."""

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from checker import certificates
from checker.certificates.proof import HEADER, Proof, check
from checker.certificates.terms import RejectedError, TermTable, expressions, script
from checker.certificates.theory import is_refuted

DECLARATIONS = """(set-logic ALL)
(declare-sort thing 0)
(declare-fun good (thing) Bool)
(declare-fun next (thing) thing)
(declare-fun size (thing) Int)
(declare-fun first () thing)
"""
GROWTH = "(assert (forall ((x thing)) (=> (good x) (and (good (next x)) (< (size x) (size (next x)))))))\n"
BEGIN = "(assert (exists ((y thing)) (and (good y) (>= (size y) 3))))\n"
GOAL = "(assert (not (exists ((x thing)) (and (good x) (let ((n (size x))) (> n 3))))))\n"
SCRIPT = f"{DECLARATIONS}{GROWTH}{BEGIN}{GOAL}(check-sat)\n"
"""Something good has the size 3 or more, and the next thing is good and larger. So something good exceeds 3."""


def number(expression: str) -> int:
    """The number that a formula of the script has, after the steps of the certificate."""
    return PROOF.terms.read(expressions(expression)[0]).number


PROOF = Proof(SCRIPT)
(PLACE,) = PROOF.witness(PROOF.assertions[1])
WITNESS = PLACE.symbol
PROOF.instance(PROOF.assertions[0].number, [PLACE])
PROOF.instance(number("(exists ((x thing)) (and (good x) (> (size x) 3)))"), [PROOF.terms.applied("next", [PLACE])])
AT_LEAST, LESS = number(f"(<= 3 (size {WITNESS}))"), number(f"(<= (size (next {WITNESS})) (size {WITNESS}))")
AT_MOST = number(f"(<= (size (next {WITNESS})) 3)")
STEPS = (
    f"w {BEGIN[8:-2]}",
    f"i {PROOF.assertions[0].number} {WITNESS}",
    f"i {number('(exists ((x thing)) (and (good x) (> (size x) 3)))')} (next {WITNESS})",
    f"l -{AT_LEAST} {LESS} -{AT_MOST}",
)


def text(*steps: str) -> str:
    return "\n".join((HEADER, *steps)) + "\n"


def test_a_certificate_of_sound_steps_is_accepted() -> None:
    assert check(SCRIPT, text(*STEPS)) == {"w": 1, "i": 2, "l": 1}


def test_the_numbers_do_not_depend_on_the_names_that_let_gives() -> None:
    other = SCRIPT.replace("(let ((n (size x))) (> n 3))", "(let ((m 3)) (let ((k (size x))) (< m k)))")
    assert check(other, text(*STEPS))


FORGERIES: dict[str, tuple[str, str, str]] = {
    "another header": (SCRIPT, "quorate certificate 2\n" + "\n".join(STEPS), "line 1: the header is not"),
    "a missing last step": (SCRIPT, text(*STEPS[:-1]), "the empty clause is not proved"),
    "a missing instance": (SCRIPT, text(STEPS[0], STEPS[2], STEPS[3]), "line 4: term"),
    "a witness before its step": (SCRIPT, text(*STEPS[1:]), f"line 2: the symbol {WITNESS} is not known"),
    "a witness used twice": (SCRIPT, text(STEPS[0], *STEPS), f"line 3: {WITNESS} is declared already"),
    "a witness of an open formula": (
        SCRIPT,
        text("w (exists ((z thing)) (= z x))"),
        "line 2: the symbol x is not known",
    ),
    "an instance of another sort": (
        SCRIPT,
        text(STEPS[0], f"i {PROOF.assertions[0].number} (size first)"),
        "line 3: the terms do not have the sorts of the variables of formula",
    ),
    "an instance with too many terms": (
        SCRIPT,
        text(STEPS[0], f"i {PROOF.assertions[0].number} first first"),
        "line 3: the terms do not have the sorts of the variables of formula",
    ),
    "an instance of no quantified formula": (
        SCRIPT,
        text(*STEPS[:3], f"i {AT_MOST} first"),
        f"line 5: term {AT_MOST} is not a closed quantified formula",
    ),
    "a false lemma": (
        SCRIPT,
        text(*STEPS[:3], f"l {AT_LEAST} {LESS} -{AT_MOST}"),
        "line 5: neither equality nor arithmetic proves this lemma",
    ),
    "an empty lemma": (SCRIPT, text("l"), "line 2: neither equality nor arithmetic proves this lemma"),
    "a lemma about a term": (
        SCRIPT,
        text(*STEPS[:3], f"l {PLACE.number} -{PLACE.number}"),
        f"line 5: term {PLACE.number} is not a formula of this proof",
    ),
    "a derived clause that does not follow": (
        SCRIPT,
        text(*STEPS[:3], "d"),
        "line 5: unit propagation does not prove this clause",
    ),
    "a clause without a reason": (SCRIPT, text(*STEPS[:3], f"a {AT_MOST}"), "line 5: 'a "),
    "a name for a number": (SCRIPT, text("l first"), "line 2: a number is expected"),
    "a script with another hypothesis": (
        SCRIPT.replace("(< (size x) (size (next x)))", "(< (size (next x)) (size x))"),
        text(*STEPS),
        "line 5: neither equality nor arithmetic proves this lemma",
    ),
    "a script without a hypothesis": (
        SCRIPT.replace(GROWTH, ""),
        text(*STEPS),
        f"line 3: the symbol {WITNESS} is not known",
    ),
    "a script with a character for witnesses": (
        SCRIPT.replace("first", "#1.0"),
        text(*STEPS),
        "the script: a script has the character #",
    ),
    "a script with another command": (
        SCRIPT.replace("(check-sat)", "(define-fun no () Bool false)(assert no)(check-sat)"),
        text(),
        "the script: the command define-fun is not known here",
    ),
    "deep nesting": (SCRIPT, text("w " + "(not " * 20_000 + "true" + ")" * 20_000), "line 2: it is nested too deeply"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_certificate_is_rejected_with_the_reason(name: str) -> None:
    asked, forged, reason = FORGERIES[name]
    with pytest.raises(RejectedError) as rejected:
        check(asked, forged)
    assert str(rejected.value).startswith(reason)
    assert "\n" not in str(rejected.value)


ATOMS = (
    *("(= first (next first))", "(= other (next other))", "(= first other)", "(= (next first) (next other))"),
    *("(good first)", "(good other)", "(good (next other))", "(<= (size first) (size other))"),
    *("(< (size (next other)) (size first))", "(<= (+ (size first) 1) (size other))", "(= (size first) (size other))"),
    *(
        "(= (* 2 (size first)) (+ 1 (* 2 (size other))))",
        "(<= (div (size first) 2) (- (size other) 3))",
        "(<= (size other) 2)",
    ),
    *("(= (size (next first)) 4)", "(< 7 (size first))", "(= (- (size first)) (size other))"),
)
SIGNS = st.dictionaries(st.sampled_from(ATOMS), st.booleans(), min_size=1, max_size=7)


@given(SIGNS)
def test_what_is_refuted_is_unsatisfiable(signs: dict[str, bool]) -> None:
    declared = DECLARATIONS + "(declare-fun other () thing)\n"
    terms = TermTable()
    script(declared + "(check-sat)", terms)
    literals = []
    for atom, holds in signs.items():
        term = terms.read(expressions(atom)[0])
        negated = term.symbol == "not"  # `<` is the negation of `<=`
        literals.append((term.arguments[0] if negated else term, holds != negated))
    solver = z3.Solver()
    solver.from_string(declared + "".join(f"(assert {a if holds else f'(not {a})'})" for a, holds in signs.items()))
    # Each refutation is right; these sets are easy, so none is missed.
    assert is_refuted(literals) == (solver.check() == z3.unsat)


@pytest.mark.parametrize(
    ("formula", "instance"),
    [
        ("(forall ((x thing)) (exists ((x thing)) (good x)))", "(exists ((x thing)) (good x))"),
        ("(forall ((x thing)) (let ((x (next x)) (y x)) (= x y)))", "(= first (next first))"),
        (
            "(forall ((x thing)) (and (good x) (forall ((y thing)) (= x y))))",
            "(and (good first) (forall ((y thing)) (= first y)))",
        ),
    ],
)
def test_an_instance_respects_the_scopes_of_names(formula: str, instance: str) -> None:
    proof = Proof(f"{DECLARATIONS}(assert {formula})(check-sat)")
    value = proof.terms.read("first")
    assert proof.terms.instance(proof.assertions[0], [value]) is proof.terms.read(expressions(instance)[0])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("(assert (good first)", "a parenthesis is not closed"),
        ("(assert (good first)))", "a parenthesis too many is closed"),
        ("(assert (good |first|))", "unexpected character '|'"),
        ("(assert (good (size first)))", "good cannot have arguments of the sorts (Int)"),
        ("(assert (= first (size first)))", "= cannot have arguments of the sorts (thing Int)"),
        ("(assert first)", "an assertion is not a formula"),
        ("(declare-fun and () Bool)", "and is declared already"),
        ("(declare-fun new (place) Bool)", "the sort place is not known"),
        ("(declare-sort thing 0)", "the sort thing cannot be declared"),
        ("(assert (forall ((x thing) (x thing)) true))", "a list of names is malformed, or names one twice"),
        ("(assert (forall ((x thing)) (good y)))", "the symbol y is not known"),
        ("(push 1)", "the command push is not known here"),
    ],
)
def test_a_script_that_is_not_understood_is_rejected(body: str, reason: str) -> None:
    with pytest.raises(RejectedError) as rejected:
        Proof(f"{DECLARATIONS}{body}(check-sat)")
    assert str(rejected.value) == reason


def test_the_checker_imports_the_standard_library_itself_and_the_reader_of_numbers() -> None:
    allowed = {*sys.stdlib_module_names, "checker.certificates", "spec.text"}
    for path in Path(certificates.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                parts = name.split(".")
                assert {".".join(parts[:1]), ".".join(parts[:2])} & allowed, name


def damaged(path: Path) -> None:
    path.write_text(path.read_text("utf-8").replace("\ni ", "\nd "), encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "code", "said"),
    [
        (lambda _: None, 0, "1 of 1 scripts have an accepted certificate"),
        (damaged, 1, "rejected: a.smt2: line 3: "),
        (Path.unlink, 1, "rejected: a.smt2: it has no certificate"),
    ],
)
def test_the_program_checks_a_folder(tmp_path: Path, damage: Callable[[Path], None], code: int, said: str) -> None:
    (tmp_path / "a.smt2").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "a.certificate").write_text(text(*STEPS), encoding="utf-8")
    damage(tmp_path / "a.certificate")
    command = [sys.executable, "-m", "checker.certificates", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (code, "")
    assert run.stdout.startswith(said)

"""What the commands print is what the transcripts of this folder show: `tests/support/transcripts.py` says how.

Expected values: a person has read each transcript, and its comments say why an answer is right. Decisions that another
computation or the protocol gives are tested elsewhere.
"""

import difflib
from pathlib import Path

import pytest

from tests.support.isolation import rewrites
from tests.support.transcripts import COLUMNS, entries, execute, replayed, show_checkout, written

HERE = Path(__file__).parent
TRANSCRIPTS = sorted(HERE.glob("*/*.txt"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", COLUMNS)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    show_checkout(tmp_path)
    return tmp_path


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_commands_print_what_the_transcript_shows(transcript: Path, folder: Path) -> None:
    shown = transcript.read_text(encoding="utf-8")
    printed = replayed(shown)
    if rewrites():
        transcript.write_text(printed, encoding="utf-8")
    elif printed != shown:
        name = str(transcript.relative_to(HERE))
        diff = difflib.unified_diff(shown.splitlines(), printed.splitlines(), name, "printed", lineterm="", n=4)
        pytest.fail("--rewrite-transcripts writes it:\n" + "\n".join(diff), pytrace=False)


# The form of a transcript.


TEXT = """\
A comment, and

another one.

  $ cat > a <<END
  > one

  > two
  > END
  $ cat a; exit 3
"""


def test_a_session_is_written_and_read_again(folder: Path) -> None:
    text = TEXT.replace("one\n\n", "one\n  >\n")
    printed = replayed(text)
    assert printed == text + "  one\n\n  two\n  exit 3\n"
    assert replayed(printed) == printed
    assert [entry.shown for entry in entries(printed)] == [(), ("one", "", "two", "exit 3")]


def test_another_output_is_another_text(folder: Path) -> None:
    assert replayed("  $ echo one\n  two\n") == "  $ echo one\n  one\n"
    assert replayed("  $ echo one\n  one\n\nA comment.\n") == "  $ echo one\n  one\n\nA comment.\n"


def test_standard_error_and_the_exit_code_are_told_apart(folder: Path) -> None:
    assert execute("python -m checker runn x").lines == [
        "2> error: unknown command 'runn'; did you mean run?",
        "exit 2",
    ]
    assert execute("python -m checker list | head -1").lines == ["scenarios"]
    assert execute("python -m checker list > listed").lines == []
    assert execute("head -1 listed; echo no >&2").lines == ["scenarios", "2> no"]


def test_output_without_a_command_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="line 2: output without a command"):
        list(entries("A comment.\n  and output\n"))


def test_the_manual_of_the_form_is_in_it(folder: Path) -> None:
    """The example in the docstring of the module."""
    from tests.support import transcripts

    text = (transcripts.__doc__ or "").partition("output follows:\n\n")[2].partition("\n\n-")[0] + "\n"
    (entry,) = entries(text)
    assert written(entry, execute(entry.command).lines) == text.splitlines()

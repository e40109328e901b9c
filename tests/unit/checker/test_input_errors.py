"""Mistakes in input files: each is one line with the file, the mistake, and a correction that helps."""

from io import StringIO
from pathlib import Path

import pytest

from checker.report.text import Progress
from spec.config import parse_zoo_cfg
from tests.support.command_line import cli

THREE = "server.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_loopback_addresses_for_clients_conflict_on_one_machine_only(host: str) -> None:
    """The loopback address is a different one on each host, as the addresses for peers show."""
    apart, together = (
        "".join(f"server.{sid}={peer}:{2888 + sid}:{3888 + sid};{host}:2181\n" for sid, peer in enumerate(peers, 1))
        for peers in (("h1", "h2", "h3"), ("localhost",) * 3)
    )
    assert not parse_zoo_cfg(apart, "zoo.cfg", complete=False).warnings
    shared = [
        each for each in parse_zoo_cfg(together, "zoo.cfg", complete=False).warnings if "client port" in each.what
    ]
    assert len(shared) == 2


def test_equal_wildcard_addresses_are_no_conflict() -> None:
    """0.0.0.0 is a different address on each host."""
    lines = "".join(f"server.{sid}=h{sid}:2888:3888;0.0.0.0:2181\n" for sid in (1, 2, 3))
    assert parse_zoo_cfg(lines, complete=False).warnings == ()


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31mb", "a\u2028b", "a\rb"])
def test_control_characters_in_a_name_never_reach_the_progress_line(name: str) -> None:
    """A name with a line break forged a line of the output; an escape sequence reached the terminal."""
    stream = StringIO()
    with Progress(name, stream) as progress:
        progress.compiling()
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert not set(text) & {"\x1b", "\r", "\u2028"}


@pytest.mark.parametrize("name", ["a\nb.yaml", "a\x1b[31mb.yaml"])
def test_control_characters_in_a_path_never_reach_an_error(tmp_path: Path, name: str) -> None:
    """A folder may come from another author."""
    (tmp_path / name).write_text("protocl: zab\n")
    ended = cli("run", tmp_path / name)
    assert ended.code == 150
    assert ended.err.count("\n") == 1
    assert "\x1b" not in ended.err

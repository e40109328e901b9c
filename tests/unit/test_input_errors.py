"""Mistakes in input files: each is one line with the file, the mistake, and a correction that helps."""

from io import StringIO
from pathlib import Path

import pytest

from checker.report.text import Progress
from checker.scenario.loader import load
from checker.scenario.yaml_lines import ScenarioError
from checker.symbolic.report import quorums_command
from spec.config import ConfigError, parse_zoo_cfg
from tests.support.command_line import cli

THREE = "server.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"


def error_of(folder: Path, text: str) -> str:
    """The error of a scenario in a folder with a zoo.cfg and 30 other files."""
    (folder / "zoo.cfg").write_text(THREE)
    for number in range(30):
        (folder / f"unrelated-{number}.yaml").write_text("")
    (folder / "s.yaml").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load(folder / "s.yaml")
    return str(caught.value)


def test_a_folder_is_not_called_a_missing_file(tmp_path: Path) -> None:
    assert error_of(tmp_path, "file: .\nservers: [1, 2, 3]\n") == "s.yaml:1: file: '.': it is a folder; name a zoo.cfg"


def test_a_missing_file_comes_with_at_most_five_names(tmp_path: Path) -> None:
    assert error_of(tmp_path, "file: qqq\nservers: [1, 2, 3]\n").endswith("; name a file that can be read")
    assert error_of(tmp_path, "file: zo.cfg\nservers: [1, 2, 3]\n").endswith("; did you mean zoo.cfg?")
    assert error_of(tmp_path, "file: unrelated.yaml\nservers: [1, 2, 3]\n").count("unrelated-") == 5


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf", ".NaN"])
def test_numbers_that_are_not_finite_are_named(tmp_path: Path, number: str) -> None:
    """YAML reads these words as floating-point numbers; `expected a whole number, got text` was wrong."""
    error = error_of(tmp_path, f"file: zoo.cfg\nservers: [1, 2, 3]\nrounds: {number}\n")
    assert error.startswith(f"s.yaml:3: rounds: {number} is not a finite number; ")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
@pytest.mark.parametrize("levels", [51, 3000, 100_000])
def test_deep_nesting_is_named_with_the_limit(tmp_path: Path, opening: str, levels: int) -> None:
    error = error_of(tmp_path, "a: " + "\n" * (opening == "- ") + opening * levels)
    if levels * len(opening) > 256 * 1024:
        assert "and the limit is 262,144" in error
    else:
        assert error.startswith(
            f"s.yaml:{2 if opening == '- ' else 1}: it is nested too deep: the limit is 50 levels; "
        )


@pytest.mark.parametrize(
    ("text", "what"), [("", "it is empty"), ("# all\n", "it is empty"), ("[1]", "it is not a map")]
)
def test_an_empty_file_is_called_empty(tmp_path: Path, text: str, what: str) -> None:
    error = error_of(tmp_path, text)
    assert error.startswith(f"s.yaml: {what}")
    assert len(error) < 100


@pytest.mark.parametrize("template", ["${ZK1}", "${ZK1:-a}", "{{ zk1 }}", "<zk1>", "$(zk1)", "$ZK1"])
def test_a_template_is_an_error_with_key_and_template(tmp_path: Path, template: str) -> None:
    """No host has such a name: the file was not filled in."""
    with pytest.raises(ConfigError) as caught:
        parse_zoo_cfg(
            f"server.1={template}:2888:3888\nserver.2=b:2888:3888\ndataDir=/data/{template}\n", complete=False
        )
    assert [str(each).partition(" is not filled in; ")[0] for each in caught.value.problems] == [
        f"zoo.cfg:1: server.1: the template {template}",
        f"zoo.cfg:3: dataDir: the template {template}",
    ]
    (tmp_path / "zoo.cfg").write_text(f"server.1={template}:2888:3888\n")
    assert quorums_command([tmp_path / "zoo.cfg"]).exit_code == 151


def test_a_template_in_a_key_of_no_use_here_is_a_warning() -> None:
    """A password may contain such characters."""
    (warning,) = parse_zoo_cfg(THREE + "ssl.keyStore.password=<a>\n", complete=False).warnings
    assert "ssl.keyStore.password: the template <a> is not filled in" in str(warning)


@pytest.mark.parametrize(
    ("address", "missing"),
    [
        ("a", "the quorum port and the election port are missing"),
        ("a:1", "the election port is missing"),
        ("a:1:2:participant:x", "it has 5 parts between colons, and 4 is the most"),
    ],
)
def test_a_short_address_names_the_missing_parts(address: str, missing: str) -> None:
    """A plain sentence instead of `'a' has 1 parts`."""
    with pytest.raises(ConfigError, match=missing):
        parse_zoo_cfg(f"server.1={address}\n", complete=False)


def test_errors_in_a_dynamic_file_have_its_path_on_this_machine(tmp_path: Path) -> None:
    """The zoo.cfg has the path on the server; the copy is next to the zoo.cfg."""
    (tmp_path / "zoo.cfg").write_text("dynamicConfigFile=/etc/absent/zoo.cfg.dynamic\n")
    (tmp_path / "zoo.cfg.dynamic").write_text("server.1=a:x:3888\n")
    answer = quorums_command([tmp_path / "zoo.cfg"])
    assert answer.text.startswith(f"{tmp_path / 'zoo.cfg.dynamic'}:1: server.1: quorum port 'x'")


@pytest.mark.parametrize(
    ("second", "shared"),
    [
        ("a:2888:3889", "quorum port a:2888"),
        ("A:2889:3888", "election port a:3888"),
        ("b:2888:3888;a:2181", "client port a:2181"),
        ("a:3888:2889", "quorum port a:3888"),
    ],
)
def test_an_address_of_two_servers_is_a_warning(tmp_path: Path, second: str, shared: str) -> None:
    """QuorumPeerConfig accepts it; QuorumServer.checkAddressDuplicate, for reconfigurations, refuses it."""
    (tmp_path / "zoo.cfg").write_text(f"server.1=a:2888:3888;a:2181\nserver.2={second}\nserver.3=c:2888:3888\n")
    answer = quorums_command([tmp_path / "zoo.cfg"])
    assert answer.exit_code == 0
    assert f"zoo.cfg:2: server.2: the {shared} is also an address of server.1 (line 1)" in answer.text


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


def test_control_characters_in_a_key_of_zoo_cfg_never_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "zoo.cfg").write_text("server.\x1b[31m=a:1:2\n")
    ended = cli("quorums", tmp_path / "zoo.cfg")
    assert ended.code == 151
    assert "server.\\u001b[31m" in ended.err

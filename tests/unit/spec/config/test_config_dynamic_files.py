"""The dynamic files of a server, and the static file that refers to one.

Expected values are from ZooKeeper 3.9.5, `QuorumPeerConfig.writeDynamicConfig` and `editStaticConfig`, and from the
files of real servers (`docs/reference-reconfig-facts.md`).
"""

import pytest

from spec.config import ConfigError, Ensemble, parse_ensemble, parse_zoo_cfg
from spec.config.dynamic_files import (
    active_file,
    ensemble_in,
    next_file,
    refers_to_dynamic_file,
    static_text,
    versioned_text,
    view_in,
    view_with_text,
)
from spec.config.server_line import Address, ServerAddress, ServerLine
from spec.quorum import majority_view

LINES = "server.1=one:2888:3888:participant;2181\nserver.2=two:2888:3888:participant;2181"
CLIENT = Address("0.0.0.0", 2181)
STATIC = """# the ensemble of the shop
tickTime=2000
dataDir=/data
initLimit=5
syncLimit=2
clientPort=2181
reconfigEnabled=true
server.1=one:2888:3888;2181
server.2=two:2888:\\
  3888;2181
peerType=participant
"""


def test_the_names_are_those_of_zookeeper() -> None:
    assert active_file("zoo.cfg", 0x100000003) == "zoo.cfg.dynamic.100000003"
    assert next_file("zoo.cfg") == "zoo.cfg.dynamic.next"


def test_a_view_with_its_text_leads_back_to_the_ensemble() -> None:
    ensemble = parse_ensemble(f"{LINES}\nversion=100000003")
    view = view_with_text(ensemble)
    assert versioned_text(view) == LINES.replace(";", ";0.0.0.0:") + "\nversion=100000003"
    assert ensemble_in(view) == ensemble


def test_a_view_without_text_has_no_ensemble() -> None:
    with pytest.raises(ConfigError):
        ensemble_in(majority_view((1, 2), version=7)).servers[0]


@pytest.mark.parametrize("host", ["a\nserver.9", "a\\b", " a", "[a", "a\rb", "a;b", "a|b"])
def test_a_host_that_its_line_cannot_express_is_an_error(host: str) -> None:
    server = ServerLine(1, (ServerAddress(host, 2888, 3888),))
    with pytest.raises(ConfigError, match=r"write hosts without blanks, backslashes, brackets and line breaks"):
        view_with_text(Ensemble((server,), majority_view((1,), version=7)))


def test_an_ipv6_literal_and_several_addresses_are_expressed() -> None:
    several = (
        "server.1=[fe80::1]:2888:3888|one:2889:3889:observer;[::1]:2181\nserver.2=two:1:2\ngroup.1=1:2\nweight.1=3"
    )
    ensemble = parse_ensemble(f"{several}\nversion=7", standalone_enabled=False)
    assert ensemble_in(view_with_text(ensemble)) == ensemble


def test_a_configuration_of_more_than_64_kib_is_neither_made_nor_read() -> None:
    server = ServerLine(1, (ServerAddress("h" * 65_536, 2888, 3888),))
    with pytest.raises(ConfigError, match="the limit is 65,536"):
        view_with_text(Ensemble((server,), majority_view((1,), version=7)))
    with pytest.raises(ConfigError, match="65,537 bytes; the limit is 65,536"):
        view_in("#" * 65_537, "a packet")


def test_the_static_file_refers_to_the_dynamic_one_and_keeps_the_rest() -> None:
    text = static_text(STATIC, "/etc/zoo.cfg.dynamic.7", CLIENT)
    assert (
        text
        == """# the ensemble of the shop
tickTime=2000
dataDir=/data
initLimit=5
syncLimit=2
reconfigEnabled=true
dynamicConfigFile=/etc/zoo.cfg.dynamic.7
"""
    )


def test_the_client_address_stays_where_the_dynamic_file_has_none() -> None:
    assert "clientPort=2181\n" in static_text(STATIC, "dynamic", None)


def test_a_second_dynamic_file_replaces_the_first() -> None:
    once = static_text(STATIC, "zoo.cfg.dynamic.7", CLIENT)
    assert static_text(once, "zoo.cfg.dynamic.8", CLIENT) == once.replace("dynamic.7", "dynamic.8")


def test_both_files_together_are_the_configuration_of_the_server() -> None:
    files = {"zoo.cfg.dynamic.100000003": LINES}
    text = static_text(STATIC, "zoo.cfg.dynamic.100000003", CLIENT)
    config = parse_zoo_cfg(text, "zoo.cfg", "2", read=files.get)
    assert config.view == majority_view((1, 2), version=0x100000003)
    assert config.client is not None and config.client.port == 2181


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_only_the_line_ends_of_java_end_a_line_of_the_static_file(character: str) -> None:
    """Python knows more line ends; a page break in a comment must not move the lines below it."""
    text = static_text(f"# page {character} break\nserver.1=one:1:2\ntickTime=500\n", "dynamic", None)
    assert text == f"# page {character} break\ntickTime=500\ndynamicConfigFile=dynamic\n"


def test_a_backslash_at_the_end_of_the_static_file_does_not_hide_the_dynamic_file() -> None:
    files = {"zoo.cfg.dynamic.7": LINES}
    text = static_text(f"{STATIC}color=red\\", "zoo.cfg.dynamic.7", CLIENT)
    config = parse_zoo_cfg(text, "zoo.cfg", "2", read=files.get)
    assert dict(config.properties) == {"color": "red"}
    assert config.view.version == 7


def test_a_backslash_in_the_name_of_the_dynamic_file_is_kept() -> None:
    files = {"a\\b.7": LINES}
    text = static_text(STATIC, "a\\b.7", CLIENT)
    assert parse_zoo_cfg(text, "zoo.cfg", "2", read=files.get).view.version == 7


def test_a_client_address_with_its_host_stays_if_the_dynamic_file_has_the_same() -> None:
    """Without it a node would listen on the loopback interface only, where a wildcard address was written."""
    named = f"{STATIC}clientPortAddress=0.0.0.0\n"
    assert "clientPort=2181\nreconfig" in static_text(named, "dynamic", CLIENT)
    assert "clientPortAddress=0.0.0.0\n" in static_text(named, "dynamic", CLIENT)
    assert "clientPort" not in static_text(named, "dynamic", Address("0.0.0.0", 2182))


def test_only_the_key_refers_to_a_dynamic_file() -> None:
    assert not refers_to_dynamic_file("# no dynamicConfigFile yet\ncolor=dynamicConfigFile\n")
    assert refers_to_dynamic_file("color=red\n dynamicConfigFile = zoo.cfg.dynamic.7\n")

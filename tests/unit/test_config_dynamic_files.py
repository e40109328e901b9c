"""The dynamic files of a server, and the static file that refers to one.

Expected values are from ZooKeeper 3.9.5, `QuorumPeerConfig.writeDynamicConfig` and `editStaticConfig`, and from the
files of real servers (`docs/reference-reconfig-facts.md`).
"""

import pytest

from spec.config import ConfigError, parse_ensemble, parse_zoo_cfg
from spec.config.dynamic_files import (
    active_file,
    ensemble_in,
    next_file,
    static_text,
    versioned_text,
    view_with_text,
)
from spec.quorum import majority_view

LINES = "server.1=one:2888:3888:participant;2181\nserver.2=two:2888:3888:participant;2181"
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


def test_the_static_file_refers_to_the_dynamic_one_and_keeps_the_rest() -> None:
    text = static_text(STATIC, "/etc/zoo.cfg.dynamic.7", names_client=True)
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
    assert "clientPort=2181\n" in static_text(STATIC, "dynamic", names_client=False)


def test_a_second_dynamic_file_replaces_the_first() -> None:
    once = static_text(STATIC, "zoo.cfg.dynamic.7", names_client=True)
    assert static_text(once, "zoo.cfg.dynamic.8", names_client=True) == once.replace("dynamic.7", "dynamic.8")


def test_both_files_together_are_the_configuration_of_the_server() -> None:
    files = {"zoo.cfg.dynamic.100000003": LINES}
    config = parse_zoo_cfg(static_text(STATIC, *files, names_client=True), "zoo.cfg", "2", read=files.get)
    assert config.view == majority_view((1, 2), version=0x100000003)
    assert config.client is not None and config.client.port == 2181

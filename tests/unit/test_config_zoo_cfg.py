"""One server's configuration, from its zoo.cfg, its myid and its dynamic file."""

import pytest

from spec.config import Address, Config, ConfigError, LearnerType, parse_zoo_cfg
from spec.quorum import hierarchical_view, majority_view

HEAD = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/var/lib/zookeeper\n"
THREE = "server.1=zk1:2888:3888\nserver.2=zk2:2888:3888\nserver.3=zk3:2888:3888\n"
NINE = "".join(f"server.{n}=zk{n}:2888:3888\n" for n in range(1, 10))


def parse(text: str, myid: str | None = "1\n", **files: str) -> Config:
    return parse_zoo_cfg(text, myid=myid, read=files.get)


def errors(text: str, myid: str | None = "1\n", **files: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, myid, **files)
    return [str(problem) for problem in caught.value.problems]


def warnings(text: str, myid: str | None = "1\n", **files: str) -> list[str]:
    return [str(problem) for problem in parse(text, myid, **files).warnings]


class TestAnEnsemble:
    def test_three_servers_are_a_majority_view(self) -> None:
        assert parse(HEAD + THREE).view == majority_view({1, 2, 3})

    def test_limits_are_in_ticks_and_times_in_milliseconds(self) -> None:
        config = parse(HEAD + THREE)
        assert (config.tick_time, config.init_limit, config.sync_limit) == (2000, 10, 5)
        assert (config.init_time, config.sync_time) == (20_000, 10_000)

    def test_session_time_outs_lie_between_two_and_twenty_ticks(self) -> None:
        config = parse(HEAD + THREE)
        assert (config.min_session_timeout, config.max_session_timeout) == (4_000, 40_000)

    def test_an_observer_is_a_member_that_does_not_vote(self) -> None:
        config = parse(HEAD + THREE + "server.4=zk4:2888:3888:observer\n", myid="4")
        assert config.view == majority_view({1, 2, 3}, observers={4})
        assert config.peer_type is LearnerType.OBSERVER

    def test_the_server_list_counts_where_peer_type_differs(self) -> None:
        text = HEAD + THREE + "peerType=observer\n"
        assert parse(text).peer_type is LearnerType.PARTICIPANT
        assert "server 1 is participant in the server list" in warnings(text)[0]

    def test_groups_and_weights_make_a_hierarchical_view(self) -> None:
        text = HEAD + NINE + "group.1=1:2:3\ngroup.2=4:5:6\ngroup.3=7:8:9\nweight.1=2\n"
        assert parse(text).view == hierarchical_view({1: (1, 2, 3), 2: (4, 5, 6), 3: (7, 8, 9)}, {1: 2})

    def test_unknown_keys_are_kept_in_their_order(self) -> None:
        config = parse(HEAD + "admin.enableServer=false\n4lw.commands.whitelist=*\n" + THREE)
        assert config.properties == (("admin.enableServer", "false"), ("4lw.commands.whitelist", "*"))

    def test_the_log_goes_to_the_data_directory_unless_told_otherwise(self) -> None:
        assert parse(HEAD + THREE).data_log_dir == "/var/lib/zookeeper"
        assert parse(HEAD + THREE + "dataLogDir=/log").data_log_dir == "/log"

    def test_the_file_that_runs_a_real_server_on_loopback(self) -> None:
        text = HEAD + "clientPort=2181\nclientPortAddress=127.0.0.1\nstandaloneEnabled=false\nmaxClientCnxns=0\n"
        config = parse(text + THREE)
        assert config.client == Address("127.0.0.1", 2181)
        assert not config.standalone_enabled

    def test_one_server_is_standalone_unless_forbidden(self) -> None:
        one = "dataDir=/d\nserver.1=zk1:2888:3888\n"
        assert not parse(one, myid=None).distributed
        assert parse(HEAD + "standaloneEnabled=false\nserver.1=zk1:2888:3888\n").distributed


class TestClientAddress:
    def test_the_server_line_may_give_it(self) -> None:
        text = HEAD + THREE.replace("zk1:2888:3888", "zk1:2888:3888;2182")
        assert parse(text).client == Address("0.0.0.0", 2182)

    def test_both_places_must_agree_on_the_port(self) -> None:
        text = HEAD + THREE.replace("zk1:2888:3888", "zk1:2888:3888;2182") + "clientPort=2181\n"
        assert errors(text) == [
            "zoo.cfg:8: clientPort: 0.0.0.0:2181 differs from 0.0.0.0:2182 in the line server.1; "
            "write the same address in both places"
        ]

    def test_an_address_needs_a_port(self) -> None:
        assert "add clientPort" in errors(HEAD + THREE + "clientPortAddress=127.0.0.1")[0]


class TestDynamicFile:
    STATIC = HEAD + "reconfigEnabled=true\ndynamicConfigFile=zoo.cfg.dynamic.10000000a\n"

    def test_the_version_is_the_end_of_its_name_in_hexadecimal(self) -> None:
        config = parse_zoo_cfg(self.STATIC, myid="1", read={"zoo.cfg.dynamic.10000000a": THREE}.get)
        assert config.view == majority_view({1, 2, 3}, version=0x10000000A)

    def test_the_views_version_is_0_while_reconfiguration_is_off(self) -> None:
        static = self.STATIC.replace("true", "false")
        config = parse_zoo_cfg(static, myid="1", read={"zoo.cfg.dynamic.10000000a": THREE}.get)
        assert (config.view.version, config.version) == (0, 0x10000000A)

    def test_a_name_without_version_has_version_0(self) -> None:
        assert parse(HEAD + "dynamicConfigFile=members", members=THREE).version == 0

    def test_an_error_in_it_carries_its_name_and_line(self) -> None:
        assert errors(HEAD + "dynamicConfigFile=members", members=THREE + "server.4=zk4") == [
            "members:4: server.4: 'zk4' is not a server address: the quorum port and the election port are missing; "
            "write host:quorumPort:electionPort[:participant|observer][;[clientAddress:]clientPort]"
        ]

    def test_server_lines_may_not_stand_beside_it(self) -> None:
        found = errors(HEAD + "server.4=zk4:1:2\ndynamicConfigFile=members", members=THREE)
        assert found == [
            "zoo.cfg:5: server.4 is set outside dynamicConfigFile; move it to the file that dynamicConfigFile names"
        ]

    def test_other_keys_and_a_version_may_not_stand_in_it(self) -> None:
        found = errors(HEAD + "dynamicConfigFile=members", members=THREE + "tickTime=1\nversion=1")
        assert [line.split(";")[0] for line in found] == [
            "members:4: unrecognised parameter tickTime",
            "members:5: version is set in a dynamic file",
        ]

    def test_it_must_be_there(self) -> None:
        assert errors(HEAD + "dynamicConfigFile=gone")[0].startswith("zoo.cfg:5: no such file: gone")


class TestBadFiles:
    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            ("tickTime=fast", "zoo.cfg:8: tickTime: 'fast' is not a whole number"),
            ("tickTime=0", "zoo.cfg:8: tickTime: tickTime is 0"),
            ("clientPort=65536", "zoo.cfg:8: clientPort: 65536 is not a port"),
            ("peerType=voter", "zoo.cfg:8: peerType: unknown peer type 'voter'"),
            ("standaloneEnabled=yes", "zoo.cfg:8: standaloneEnabled: 'yes' is neither true nor false"),
            ("server.x=zk4:1:2", "zoo.cfg:8: server.x does not name a server by its number"),
            ("server.01=zk4:1:2", "zoo.cfg:8: server.01 is server 1 once more"),
            ("version=xyz", "zoo.cfg:8: version 'xyz' is not a hexadecimal number"),
            # `Long.parseLong(value, 16)` takes numbers below 2^63.
            ("version=8000000000000000", "zoo.cfg:8: version '8000000000000000' is not a hexadecimal number"),
            ("electionAlg=0", "zoo.cfg:8: electionAlg: only 3 is supported"),
            ("minSessionTimeout=90000", "session time-outs from 90000 to 40000 ms"),
            ("quorum.auth.serverRequireSasl=true", "true while quorum.auth.enableSasl is not"),
        ],
    )
    def test_a_bad_line_gets_file_line_and_reason(self, lines: str, message: str) -> None:
        (found,) = errors(HEAD + THREE + lines)
        assert message in found

    def test_all_errors_are_reported_at_once_in_the_order_of_the_lines(self) -> None:
        text = "tickTime=x\nserver.1=zk1\nserver.2=zk2:1:1\npeerType=z\n"
        with pytest.raises(ConfigError) as caught:
            parse(HEAD + text)
        assert [problem.line for problem in caught.value.problems] == [5, 6, 7, 8]

    def test_a_bad_server_line_is_no_missing_participant(self) -> None:
        (found,) = errors(HEAD + "server.1=zk1\nserver.2=zk2:2888:3888:observer\n", myid="2")
        assert "server.1" in found

    def test_what_is_missing_is_an_error_without_a_line(self) -> None:
        assert [line.split(";")[0] for line in errors(THREE)] == [
            "zoo.cfg: dataDir is not set",
            "zoo.cfg: initLimit is not set",
            "zoo.cfg: syncLimit is not set",
        ]

    def test_an_excerpt_need_not_be_complete(self) -> None:
        assert parse_zoo_cfg(THREE, complete=False).view == majority_view({1, 2, 3})

    def test_observers_need_participants(self) -> None:
        (found,) = errors(HEAD + "server.1=a:1:2:observer\n")
        assert "observers with 0 participants" in found

    def test_without_standalone_mode_somebody_must_vote(self) -> None:
        (found,) = errors(HEAD + "standaloneEnabled=false\n")
        assert "no participant" in found


class TestMyid:
    def test_it_must_be_in_the_server_list(self) -> None:
        assert errors(HEAD + THREE, myid="4") == [
            "myid:1: server 4 is not in the server list of zoo.cfg; write one of 1, 2, 3, or add server.4"
        ]

    @pytest.mark.parametrize("text", ["", "one", "1 ", " 1", "\n1"])
    def test_it_is_a_bare_number_on_the_first_line(self, text: str) -> None:
        assert "is not a number" in errors(HEAD + THREE, myid=text)[0]

    def test_a_member_of_an_ensemble_needs_one(self) -> None:
        assert errors(HEAD + THREE, myid=None)[0].startswith("myid: the file is missing")


class TestGroups:
    GROUPS = "group.1=1:2\ngroup.2=3\n"

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            ("group.1=1:2\ngroup.2=2:3", "zoo.cfg:9: group.2: server 2 is already in group.1 (line 8)"),
            ("group.1=1:2", "zoo.cfg:7: server 3 votes and is in no group"),
            (
                "weight.1=2\ngroup.1=1:2:3:4",
                "zoo.cfg:9: group.1: server 4 has no server.4 line and no weight",
            ),
            ("group.1=1:2:3\nweight.1=heavy", "zoo.cfg:9: weight.1: weight 'heavy' is not a whole number"),
            ("group.1=1:2:three", "zoo.cfg:8: group.1: 'three' is not the id of a server"),
            ("group.one=1:2:3", "zoo.cfg:8: group.one: no number after the dot"),
            ("group.1=1:2:3\ngroup.01=1", "zoo.cfg:9: group.01: group 1 once more"),
        ],
    )
    def test_a_bad_line_gets_file_line_and_reason(self, lines: str, message: str) -> None:
        assert any(message in found for found in errors(HEAD + THREE + lines))

    def test_a_weight_for_an_unknown_server_has_no_effect_and_is_warned_of(self) -> None:
        text = HEAD + THREE + self.GROUPS + "weight.9=5\n"
        assert parse(text).view == hierarchical_view({1: (1, 2), 2: (3,)})
        assert "weight.9: there is no server.9" in warnings(text)[0]

    def test_a_negative_weight_is_accepted_and_warned_of(self) -> None:
        assert "need not share a server" in warnings(HEAD + THREE + self.GROUPS + "weight.2=-1\n")[0]

    def test_an_observer_with_a_weight_makes_its_group_harder_to_win(self) -> None:
        text = HEAD + THREE + "server.4=zk4:1:2:observer\ngroup.1=1:2:3:4\nweight.4=3\n"
        view = parse(text).view
        assert not view.contains_quorum({1, 2, 3})
        assert len(warnings(text)) == 2

    def test_an_observer_need_not_be_in_a_group(self) -> None:
        text = HEAD + THREE + "server.4=zk4:1:2:observer\ngroup.1=1:2:3\n"
        assert parse(text).view == hierarchical_view({1: (1, 2, 3)}, observers={4})


class TestLenience:
    def test_blanks_around_a_number_in_the_static_file(self) -> None:
        assert parse(HEAD + THREE + "maxClientCnxns=60 ").properties == (("maxClientCnxns", "60"),)

    def test_of_two_equal_server_keys_the_last_counts(self) -> None:
        config = parse(HEAD + THREE + "server.3=other:2888:3888\n")
        server = config.server(3)
        assert server is not None
        assert server.addresses[0].host == "other"
        assert "server.3 is set again, and line 7 is ignored" in str(config.warnings[0])

    def test_several_addresses_are_read_and_warned_of(self) -> None:
        text = HEAD + THREE.replace("zk1:2888:3888", "zk1:2888:3888|net1:2888:3888")
        assert "multiAddress" in warnings(text)[0]

    def test_a_colon_for_the_equals_sign(self) -> None:
        assert parse((HEAD + THREE).replace("=", ": ")).view == majority_view({1, 2, 3})

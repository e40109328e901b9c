"""One server's configuration, from its zoo.cfg, its myid and its dynamic file."""

import pytest

from spec.config import Address, Config, ConfigError, LearnerType, parse_zoo_cfg
from spec.quorum import hierarchical_view, majority_view

HEAD = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/var/lib/zookeeper\n"
THREE = "server.1=zk1:2888:3888\nserver.2=zk2:2888:3888\nserver.3=zk3:2888:3888\n"
NINE = "".join(f"server.{n}=zk{n}:2888:3888\n" for n in range(1, 10))


def parse(text: str, myid: str | None = "1\n", **files: str) -> Config:
    return parse_zoo_cfg(text, myid=myid, read=files.get)


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


class TestErrors:
    """What they say is in `tests/transcripts/node/bad_files.txt`."""

    def test_all_errors_are_reported_at_once_in_the_order_of_the_lines(self) -> None:
        with pytest.raises(ConfigError) as caught:
            parse(HEAD + "tickTime=x\nserver.1=zk1\nserver.2=zk2:1:1\npeerType=z\n")
        assert [problem.line for problem in caught.value.problems] == [5, 6, 7, 8]

    def test_a_bad_server_line_is_no_missing_participant(self) -> None:
        with pytest.raises(ConfigError) as caught:
            parse(HEAD + "server.1=zk1\nserver.2=zk2:2888:3888:observer\n", myid="2")
        assert len(caught.value.problems) == 1

    def test_an_excerpt_need_not_be_complete(self) -> None:
        assert parse_zoo_cfg(THREE, complete=False).view == majority_view({1, 2, 3})


class TestGroups:
    GROUPS = "group.1=1:2\ngroup.2=3\n"

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

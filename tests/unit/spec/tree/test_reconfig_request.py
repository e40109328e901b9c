"""A leader prepares a reconfig request: the transaction, and the error of the first check that fails.

Expected values are from ZooKeeper 3.9.5, `PrepRequestProcessor.pRequest2Txn` (case reconfig), and from the replies of
real servers (`docs/reference-reconfig-facts.md`, refusals).
"""

import pytest
from msgspec.structs import replace

from spec.config import ConfigError, parse_ensemble, parse_zoo_cfg
from spec.config.dynamic_files import view_with_text
from spec.durable import Durable
from spec.election.state import Peer
from spec.quorum import Reconfiguration, View, majority_view
from spec.service.reconfig_request import prepare
from spec.tree.data import Id
from spec.tree.options import Options
from spec.tree.replies import Code
from spec.tree.requests import Reconfig, Request
from spec.tree.store import FIRST_ZNODES, FrozenStore
from spec.tree.txns import Change, ErrorTxn, ReconfigTxn
from spec.txn import make_zxid
from spec.zab.state import Handler, Leader, LeaderPhase, Outstanding, Stage

LINES = {sid: f"server.{sid}=h{sid}:2888:3888:participant;0.0.0.0:2181" for sid in range(1, 6)}
OLD = view_with_text(parse_ensemble("\n".join(LINES[sid] for sid in (1, 2, 3)) + "\nversion=100000000"))
LEADER = Leader(
    LeaderPhase.BROADCAST,
    1,
    (),
    tuple(Handler(sid, Stage.SERVING) for sid in (1, 2)),
    outstanding=(Outstanding(make_zxid(1, 5)),),
    committed=make_zxid(1, 4),
)
NEXT = make_zxid(1, 6)
TREE = FrozenStore().carry_out(FIRST_ZNODES)
FREE = Options(skip_acl=True)


def asked(
    joining: str = "",
    leaving: str = "",
    members: str = "",
    expected: int = -1,
    view: View = OLD,
    last_seen: View | None = None,
    checked: Code = Code.OK,
    options: Options = FREE,
) -> Change | Reconfiguration:
    peer = Peer(3, view, Durable(1, 1), last_seen=last_seen)
    request = Request(7, 9, Reconfig(joining, leaving, members, expected), (Id("ip", "127.0.0.1"),))
    return prepare(peer, LEADER, TREE, request, 1234, checked, options).value


def code(value: Change | Reconfiguration) -> Code:
    assert isinstance(value, Change) and isinstance(value.record, ErrorTxn)
    assert (value.session, value.cxid, value.time) == (7, 9, 1234)
    return Code(value.record.err)


def test_the_transaction_has_the_new_members_and_the_next_zxid_as_their_version() -> None:
    value = asked(joining=LINES[4])
    assert isinstance(value, Reconfiguration)
    text = "\n".join([*(LINES[sid] for sid in (1, 2, 3, 4)), "version=100000006"])
    assert value.change == Change(7, 9, 1234, ReconfigTxn("/zookeeper/config", text.encode(), -1))
    assert (value.view.voters, value.view.version) == ({1, 2, 3, 4}, NEXT)


def test_the_expected_version_is_that_of_the_active_configuration() -> None:
    assert isinstance(asked(joining=LINES[4], expected=OLD.version), Reconfiguration)
    assert code(asked(joining=LINES[4], expected=OLD.version + 1)) is Code.BAD_VERSION


@pytest.mark.parametrize(
    ("request_of", "answer"),
    [
        pytest.param({"view": replace(OLD, version=0)}, Code.RECONFIG_DISABLED, id="no version"),
        pytest.param({"last_seen": majority_view((1, 2), version=NEXT)}, Code.RECONFIG_IN_PROGRESS, id="another one"),
        pytest.param({"checked": Code.SESSION_EXPIRED}, Code.SESSION_EXPIRED, id="an expired session"),
        pytest.param({"leaving": "one"}, Code.MARSHALLING_ERROR, id="an id that is no number"),
        pytest.param({"leaving": "1,2"}, Code.BAD_ARGUMENTS, id="one voter is left"),
        pytest.param({"leaving": "1,2,3"}, Code.BAD_ARGUMENTS, id="no voter is left"),
        pytest.param(
            {"leaving": "1,2", "joining": f"{LINES[4]},{LINES[5]}"}, Code.NEW_CONFIG_NO_QUORUM, id="no synced quorum"
        ),
        pytest.param({"joining": LINES[4], "options": Options()}, Code.NO_AUTH, id="no permission"),
    ],
)
def test_a_request_is_refused_with_the_code_of_zookeeper(request_of: dict[str, object], answer: Code) -> None:
    assert code(asked(**request_of)) is answer  # type: ignore[arg-type]


@pytest.mark.parametrize("voters", [1, 2, 3])
def test_a_leader_accepts_the_members_that_the_reader_of_the_next_start_accepts(voters: int) -> None:
    """`standaloneEnabled` has its default, true. The leader is 3; `QuorumPeerConfig.parseDynamicConfig`, 3.9.5."""
    sids = (3, 2, 1)
    lines = [
        LINES[sid].replace("participant", "participant" if n < voters else "observer") for n, sid in enumerate(sids)
    ]
    members = [*lines, LINES[4].replace("participant", "observer")]
    value = asked(members=",".join(members))
    text = "tickTime=2000\ninitLimit=5\nsyncLimit=2\ndataDir=/d\nreconfigEnabled=true\ndynamicConfigFile=f.100000006\n"
    if voters == 1:
        assert code(value) is Code.BAD_ARGUMENTS
        with pytest.raises(ConfigError, match="observers with 1 participant"):
            parse_zoo_cfg(text, myid="4\n", read={"f.100000006": "\n".join(members)}.get)
    else:
        assert isinstance(value, Reconfiguration)
        started = parse_zoo_cfg(text, myid="4\n", read={"f.100000006": value.view.text}.get)
        assert started.distributed
        assert started.view == replace(value.view, text="")


def test_the_permission_is_checked_last() -> None:
    assert code(asked(leaving="1,2", options=Options())) is Code.BAD_ARGUMENTS


def test_the_session_is_checked_before_another_reconfiguration() -> None:
    pending = majority_view((1, 2), version=NEXT)
    assert code(asked(last_seen=pending, checked=Code.SESSION_MOVED)) is Code.SESSION_MOVED


def test_the_reason_of_a_refusal_is_one_short_printable_line() -> None:
    """A client without permission chooses the text, and the leader logs it."""
    peer = Peer(3, OLD, Durable(1, 1))
    members = "\n".join(f"color\\rred{number}=1" for number in range(1000))
    request = Request(7, 9, Reconfig("", "", members, -1), ())
    reason = prepare(peer, LEADER, TREE, request, 1234, Code.OK, Options()).reason
    assert "unrecognised parameter color red0" in reason
    assert reason.isprintable() and len(reason) <= 203


@pytest.mark.parametrize("host", ["h\0", "h\t", "a b", "h\u2028server.9=h", "\u202eh", "\x1b[31m", "h\x85"])
@pytest.mark.parametrize("form", ["server.4={}:2888:3888;2181", "server.4=h4:2888:3888;{}:2181"])
def test_a_host_that_no_server_has_is_refused(host: str, form: str) -> None:
    line = form.format(host)
    assert code(asked(joining=line)) is Code.BAD_ARGUMENTS
    assert code(asked(members=",".join((*LINES.values(), line.replace(".4", ".6"))))) is Code.BAD_ARGUMENTS


def test_the_id_of_a_server_without_myid_is_refused() -> None:
    """`QuorumPeerConfig.UNSET_SERVERID`."""
    line = LINES[4].replace("server.4", "server.-1")
    assert code(asked(joining=line)) is Code.BAD_ARGUMENTS
    assert code(asked(members=",".join((*LINES.values(), line)))) is Code.BAD_ARGUMENTS

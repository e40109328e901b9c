"""Laws of configuration text: garbage is refused with an error, and written text reads back the same."""

from hypothesis import given
from hypothesis import strategies as st

from spec.config import (
    Address,
    Ensemble,
    LearnerType,
    ServerAddress,
    ServerLine,
    parse_ensemble,
    parse_zoo_cfg,
    render_ensemble,
)
from spec.config.problems import ConfigError
from spec.quorum import hierarchical_view, majority_view

PIECES = st.sampled_from(
    [
        *(
            "server.1",
            "server.",
            "server.-1",
            "group.1",
            "group",
            "weight.2",
            "weight",
            "version",
            "dynamicConfigFile",
        ),
        *("tickTime", "clientPort", "peerType", "reconfigEnabled", "standaloneEnabled", "minSessionTimeout"),
        *("=", ":", " ", "\\", "\\\n", "\n", "\r", "#", "!", ";", "|", "[", "]", "[::1]", "\\u00", "\\ud800"),
        *("1", "2:3", "h:1:2", "observer", "true", "-7", "65536", "9" * 30, "٣", "é", "\x00"),
    ]
)
garbage = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join))


@given(garbage, st.one_of(st.none(), garbage), garbage, st.booleans())
def test_garbage_gives_a_configuration_or_errors_with_places(
    text: str, myid: str | None, dynamic: str, complete: bool
) -> None:
    try:
        config = parse_zoo_cfg(text, "zoo.cfg", myid, lambda _: dynamic, complete)
    except ConfigError as error:
        assert error.problems
        for problem in error.problems:
            source = {"zoo.cfg": text, "myid": myid or ""}.get(problem.file, dynamic)
            lines = source.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
            assert 0 <= problem.line <= lines
    else:
        assert config.view.voters | config.view.observers == {server.sid for server in config.servers}


hosts = st.one_of(st.from_regex(r"[a-z][a-z0-9.-]{0,9}", fullmatch=True), st.ip_addresses().map(str))
ports = st.integers(0, 65535)
addresses = st.builds(Address, hosts, ports)


@st.composite
def server_addresses(draw: st.DrawFn) -> ServerAddress:
    quorum, election = draw(st.lists(ports, min_size=2, max_size=2, unique=True))
    return ServerAddress(draw(hosts), quorum, election)


@st.composite
def ensembles(draw: st.DrawFn) -> Ensemble:
    """Draw one to six servers, at least two of them voters, in a majority or in groups."""
    sids = sorted(draw(st.sets(st.integers(0, 300), min_size=2, max_size=6)))
    observers = set(sids[2:]) & draw(st.sets(st.sampled_from(sids)))
    servers = tuple(
        ServerLine(
            sid,
            tuple(sorted(draw(st.sets(server_addresses(), min_size=1, max_size=2)))),
            LearnerType.OBSERVER if sid in observers else LearnerType.PARTICIPANT,
            draw(st.none() | addresses),
            draw(st.none() | addresses),
        )
        for sid in sids
    )
    version = draw(st.integers(0, 2**63 - 1))
    voters = [sid for sid in sids if sid not in observers]
    if draw(st.booleans()):
        return Ensemble(servers, majority_view(voters, observers, version))
    groups: dict[int, list[int]] = {}
    for sid in voters:
        groups.setdefault(draw(st.integers(0, 3)), []).append(sid)
    weights = {sid: draw(st.integers(0, 9)) for sid in voters}
    return Ensemble(servers, hierarchical_view(groups, weights, observers, version))


@given(ensembles())
def test_a_rendered_ensemble_reads_back_the_same(ensemble: Ensemble) -> None:
    assert parse_ensemble(render_ensemble(ensemble)) == ensemble


@given(ensembles())
def test_a_static_file_with_the_same_lines_gives_the_same_servers_and_quorums(ensemble: Ensemble) -> None:
    config = parse_zoo_cfg(render_ensemble(ensemble), complete=False)
    assert config.ensemble == ensemble

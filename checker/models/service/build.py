"""Construction of the parts of a model from a setup: columns with their initial values, actors and rules."""

from __future__ import annotations

from typing import NamedTuple

from checker.engine import Actor, Column, Rule
from checker.models.service.client_connection import ClientConnection, ConnectionState, link_actor
from checker.models.service.library import library_actor
from checker.models.service.rules import faults_actor, rules
from checker.models.service.servers import LaggingServer, Leader, lagging_server_actor, leader_actor, server_without_lag
from checker.models.service.setup import (
    FAULTS_LEFT,
    LEADER,
    ServiceSetup,
    library_name,
    link_name,
    server_name,
    session_of,
    watches_name,
)
from checker.models.service.watches import watches_actor
from spec.client.library import Library
from spec.tree.data import OPEN_ACL_UNSAFE, new_znode
from spec.tree.paths import ROOT
from spec.tree.store import FrozenStore


class ModelFragment(NamedTuple):
    """Columns, actors and rules that one part of a model contributes."""

    columns: tuple[Column, ...]
    actors: tuple[Actor, ...]
    rules: tuple[Rule, ...]


def service(setup: ServiceSetup) -> ModelFragment:
    """The service. Initially every client is connected, with its first session."""
    tree = first_tree(setup)
    columns = [Column(LEADER, Leader(tree))]
    actors = [leader_actor(setup)]
    for server in setup.server_ids:
        if setup.lag:
            columns.append(Column(server_name(server), LaggingServer(tree)))
            actors.append(lagging_server_actor(server, setup))
        else:
            actors.append(server_without_lag(server))
        columns.append(Column(watches_name(server), frozenset()))
        actors.append(watches_actor(server, setup))
    for client in setup.client_ids:
        first = session_of(client)
        columns.append(
            Column(link_name(client), ClientConnection(ConnectionState.UP, first, setup.first_server(client)))
        )
        actors.append(link_actor(client, setup))
        if setup.has_library:
            columns.append(Column(library_name(client), Library(session=first)))
            actors.append(library_actor(client, setup))
    columns.append(Column(FAULTS_LEFT, setup.budgets))
    actors.append(faults_actor())
    return ModelFragment(tuple(columns), tuple(actors), tuple(rules(setup)))


def first_tree(setup: ServiceSetup) -> FrozenStore:
    """The initial tree of a run: the root, the paths of the setup, and a session for each client.

    ZooKeeper's own znodes are left out, since no client here reads them.
    """
    paths = sorted({ROOT, *setup.paths})
    znode = new_znode(b"", OPEN_ACL_UNSAFE, 0, 0, 0)
    sessions = tuple((session_of(client), 0) for client in setup.client_ids)
    return FrozenStore(tuple((path, znode) for path in paths), sessions)

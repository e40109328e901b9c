"""Servers that give canned answers, in the form of `ConfCommand` and `StatCommand`: sockets of this process."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

WHITELIST = "is not executed because it is not in the whitelist.\n"


def membership(*sids: int, version: str = "0") -> str:
    lines = "".join(f"server.{sid}=zoo{sid}:2888:3888:participant\n" for sid in sids)
    return f"{lines}version={version}"


def conf(sid: int, members: str, data: str = "/var/lib/zookeeper") -> str:
    return (
        f"clientPort=2181\nsecureClientPort=-1\ndataDir={data}/version-2\ndataDirSize=67\ndataLogDir={data}/version-2\n"
        f"tickTime=2000\nmaxClientCnxns=60\nserverId={sid}\ninitLimit=10\nsyncLimit=5\nelectionAlg=3\n"
        f"membership: \n{members}"
    )


def srvr(mode: str) -> str:
    return f"Zookeeper version: 3.9.3-c26634f34490bb0ea7a09cc51e05ede3b4e320ee, built on 2024\nMode: {mode}\n"


@contextmanager
def serving(answers: Mapping[str, str]) -> Iterator[str]:
    """A socket that gives these answers; yields its address. A word without an answer ends the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(answers.get(connection.recv(4).decode(), "").encode())

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def server(sid: int, mode: str, members: str) -> dict[str, str]:
    return {"conf": conf(sid, members), "srvr": srvr(mode)}


@contextmanager
def ensemble(*servers: Mapping[str, str]) -> Iterator[str]:
    with ExitStack() as stack:
        yield ",".join([stack.enter_context(serving(each)) for each in servers])


LOOKING = dict.fromkeys(("conf", "srvr"), "This ZooKeeper instance is not currently serving requests\n")
"""The answers of a server that looks for a leader."""


@contextmanager
def refusing() -> Iterator[str]:
    """An address at which nothing listens, and nothing will meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"

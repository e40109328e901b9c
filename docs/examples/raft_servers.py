"""A small Raft in threads, with a log of its steps: the system of docs/how-to-validate-your-own-system.md. Run it with

    python docs/examples/raft_servers.py FOLDER [--bug votes-twice | counts-older] [--random SEED]

Each of three servers is a thread, and its log is a file of JSON lines. A line has the fields that a step has changed.
A link keeps the order of its messages, and a crash of one end loses them. The schedule decides when a timer runs out,
when a client sends a command and when a server crashes; the threads decide the rest.
"""

import argparse
import json
import random
import time
from collections import deque
from pathlib import Path
from threading import Condition, Thread

NAMES = ("s1", "s2", "s3")
MAJORITY = 2
LOGGED = ("term", "role", "voted", "log", "commit")


class Network:
    """The links between servers, and the orders of the schedule."""

    def __init__(self):
        self.changed = Condition()
        self.links = {(a, b): deque() for a in NAMES for b in NAMES if a != b}
        self.orders = {name: deque() for name in NAMES}
        self.crashes = dict.fromkeys(NAMES, 0)
        self.busy = set()
        self.cut = None  # the server whose messages are lost

    def take(self, name):
        """Wait for an order or a message; return its source, itself, and the crashes until now."""
        with self.changed:
            self.busy.discard(name)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.waiting(name))
            queue, source = random.choice(self.waiting(name))
            self.busy.add(name)
            return source, queue.popleft(), dict(self.crashes)

    def waiting(self, name):
        if self.orders[name]:
            return [(self.orders[name], None)]
        return [(queue, a) for (a, b), queue in self.links.items() if b == name and queue]

    def send(self, sender, receiver, message, crashes):
        """Send a message, unless the connection has ended since the step began."""
        with self.changed:
            if sender != self.cut and crashes[receiver] == self.crashes[receiver]:
                self.links[sender, receiver].append(message)
                self.changed.notify_all()

    def order(self, name, what):
        with self.changed:
            self.orders[name].append(what)
            self.changed.notify_all()

    def end(self, name):
        """A server crashes: its connections end."""
        with self.changed:
            self.crashes[name] += 1
            self.busy.discard(name)
            for ends, queue in self.links.items():
                if name in ends:
                    queue.clear()
            self.changed.notify_all()

    def rest(self):
        """Wait until all orders and messages are handled."""
        with self.changed:
            self.changed.wait_for(
                lambda: not self.busy and not any(self.orders.values()) and not any(self.links.values())
            )


class Server(Thread):
    """One life of a server. `disk` is what earlier lives have left: the term, the vote and the log."""

    def __init__(self, name, network, disk, file, bug):
        super().__init__(daemon=True)
        self.server, self.network, self.disk, self.file, self.bug = name, network, disk, file, bug
        self.peers = [peer for peer in NAMES if peer != name]
        self.role, self.commit = "follower", 0
        self.votes, self.match, self.next = set(), {}, {}

    term = property(lambda self: self.disk["term"])
    voted = property(lambda self: self.disk["voted"])
    log = property(lambda self: self.disk["log"])

    def state(self):
        return {name: json.loads(json.dumps(getattr(self, name))) for name in LOGGED}

    def run(self):
        while True:
            source, message, self.crashes = self.network.take(self.server)
            if message == "crash":
                self.write({"event": "crash"})
                self.network.end(self.server)
                return
            if message == "start":
                self.write({"event": "start", **self.state()})
                continue
            before, self.sent = self.state(), []
            what = self.step(source, message)
            if what is not None:
                self.write(what | {name: value for name, value in self.state().items() if value != before[name]})
            for peer, sent in self.sent:
                self.network.send(self.server, peer, sent, self.crashes)

    def write(self, line):
        self.file.write(json.dumps({"time": round(time.time(), 6), "server": self.server, **line}) + "\n")
        self.file.flush()

    def step(self, source, message):
        """Take one step; return the line about it, or None if nothing happens."""
        if message == "time out" and self.role != "leader":
            self.disk.update(term=self.term + 1, voted=self.server)
            self.role, self.votes = "candidate", {self.server}
            self.send_all({"message": "RequestVote", "last": self.last()})
        elif message == "request" and self.role == "leader":
            self.log.append([self.term, len(self.log) + 1])
            self.append_all()
        elif isinstance(message, str):
            return None
        else:
            self.receive(source, message)
            return {"event": "got", "message": message["message"], "from": source}
        return {"event": message}

    def last(self):
        return [self.log[-1][0], len(self.log)] if self.log else [0, 0]

    def send(self, peer, message):
        self.sent.append((peer, {**message, "term": self.term}))

    def send_all(self, message):
        for peer in self.peers:
            self.send(peer, message)

    def append_all(self):
        for peer in self.peers:
            self.send_entries(peer)

    def send_entries(self, peer):
        index = self.next[peer] - 1
        previous = self.log[index - 1][0] if index else 0
        entries = [*self.log[index:]]
        message = {"index": index, "previous": previous, "entries": entries, "commit": self.commit}
        self.send(peer, {"message": "AppendEntries", **message})

    def receive(self, source, message):
        if message["term"] > self.term:
            self.disk.update(term=message["term"], voted=None)
            self.role = "follower"
        if message["term"] < self.term:
            return
        handlers = {
            "RequestVote": self.vote,
            "VoteGranted": self.count,
            "AppendEntries": self.append,
            "Appended": self.advance,
        }
        handlers[message["message"]](source, message)

    def vote(self, candidate, message):
        is_free = self.voted in (None, candidate) or (self.bug == "votes-twice" and self.voted != self.server)
        if is_free and message["last"] >= self.last():
            self.disk["voted"] = candidate
            self.send(candidate, {"message": "VoteGranted"})

    def count(self, voter, _):
        if self.role == "candidate":
            self.votes.add(voter)
            if len(self.votes) >= MAJORITY:
                self.role = "leader"
                self.match = dict.fromkeys(self.peers, 0)
                self.next = dict.fromkeys(self.peers, len(self.log) + 1)
                self.append_all()

    def append(self, leader, message):
        self.role = "follower"
        index, entries = message["index"], message["entries"]
        if index > len(self.log) or (index and self.log[index - 1][0] != message["previous"]):
            self.send(leader, {"message": "Appended", "match": None})
            return
        end = index + len(entries)
        if self.log[index:end] != entries:
            self.log[index:] = entries
        self.commit = max(self.commit, min(message["commit"], end))
        self.send(leader, {"message": "Appended", "match": end})

    def advance(self, peer, message):
        if self.role != "leader":
            return
        if message["match"] is None:
            self.next[peer] = max(self.match[peer] + 1, self.next[peer] - 1)
        else:
            self.match[peer] = max(self.match[peer], message["match"])
            self.next[peer] = self.match[peer] + 1
        for index in range(len(self.log), self.commit, -1):
            stored = 1 + sum(match >= index for match in self.match.values())
            if stored >= MAJORITY and (self.bug == "counts-older" or self.log[index - 1][0] == self.term):
                self.commit = index
                break
        if self.next[peer] <= len(self.log):
            self.send_entries(peer)


class Ensemble:
    """Three servers, and the orders of a schedule."""

    def __init__(self, folder, bug):
        folder.mkdir(parents=True, exist_ok=True)
        self.network, self.bug = Network(), bug
        self.disks = {name: {"term": 0, "voted": None, "log": []} for name in NAMES}
        self.files = {name: (folder / f"{name}.jsonl").open("w") for name in NAMES}
        self.threads = {}

    def begin(self, name):
        self.threads[name] = Server(name, self.network, self.disks[name], self.files[name], self.bug)
        self.threads[name].start()

    def restart(self, name):
        self.network.order(name, "crash")
        self.threads[name].join()
        self.network.order(name, "start")
        self.begin(name)

    def leader(self):
        """The leader of the latest term, if there is one."""
        leaders = [server for server in self.threads.values() if server.role == "leader"]
        return max(leaders, key=lambda server: server.term).server if leaders else None

    def end(self):
        self.network.rest()
        for name, thread in self.threads.items():
            self.network.order(name, "crash")
            thread.join()
            self.files[name].close()


def schedule(ensemble):
    """Two candidates at the same time; then an entry of term 1 that its leader replicates only in term 2."""
    network = ensemble.network
    for name in ("s1", "s2"):
        network.order(name, "time out")
    for name in NAMES:
        ensemble.begin(name)
    network.rest()
    leader = ensemble.leader()
    if leader is None:
        return  # only with votes-twice
    network.order(leader, "request")
    network.rest()
    network.cut = leader
    network.order(leader, "request")
    network.rest()
    network.cut = None
    ensemble.restart(leader)
    network.order(leader, "time out")
    network.rest()
    network.order(leader, "request")


def random_schedule(ensemble, seed, orders=25):
    """Orders at random, some before the last one is carried out."""
    choose = random.Random(seed)
    for name in NAMES:
        ensemble.begin(name)
    for _ in range(orders):
        what = choose.choice(("time out", "request", "request", "crash"))
        if what == "crash":
            ensemble.restart(choose.choice(NAMES))
        elif what == "time out":
            ensemble.network.order(choose.choice(NAMES), "time out")
        else:
            ensemble.network.order(ensemble.leader() or choose.choice(NAMES), "request")
        if choose.random() < 0.7:
            ensemble.network.rest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bug", choices=("votes-twice", "counts-older"))
    parser.add_argument("--random", type=int)
    options = parser.parse_args()
    ensemble = Ensemble(options.folder, options.bug)
    if options.random is None:
        schedule(ensemble)
    else:
        random_schedule(ensemble, options.random)
    ensemble.end()


if __name__ == "__main__":
    main()

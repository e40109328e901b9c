"""Random scripts of commands, from a seed: the same number gives the same scripts on every machine.

Rules of this module:

- Few paths, so that commands meet, and mostly valid values.
- The rules of `harness/conform/cases/case.py`: no request that damages a server, and the entry `CLEANER` in each ACL
  that is not refused.
- Only one-shot watches, `ANY` for the types of `checkWatches` and `removeWatches`: the releases disagree about the
  others, and the named cases compare them.
"""

import random
from collections.abc import Callable

from harness import commands as c
from harness.conform.cases.case import CLEANER, LONG

SESSIONS = 3
PATHS = ("", "/a", "/b", "/a/b", "/a/c", "/a/b/d", "/0000000000", "/a0000000000", "/a/0000000001", "/b/e")
BAD_PATHS = ("/a/", "/a//b", "/./a", "/a/..", "/\0", "/a\x1f")
DATA = (b"", b"x", b"longer", None)
VERSIONS = (-1, -1, -1, 0, 0, 1, 2, -2)
PERMISSIONS = (31, 31, 1, 1, 2, 3, 4, 8, 9, 16, 17, 28)
IDENTITIES = (
    ("world", "anyone"), ("world", "anyone"), ("ip", "0.0.0.0/0"), ("ip", "10.255.255.255"), ("ip", "10.255.255.255"),
    CLEANER[1:], CLEANER[1:], ("auth", ""), ("nosuch", "x"), ("digest", "a:b:c"),
)  # fmt: skip
BAD_PATH_SHARE = 0.05
ANY_TYPE = 3


class ScriptGenerator:
    """A source of random scripts: the n-th script depends on the seed and on n alone."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def script(self, number: int, longest: int = 25) -> c.Script:
        """The script with this number."""
        return _Draw(random.Random(f"{self._seed}/{number}")).script(longest)


class _Draw:
    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._kinds: tuple[tuple[int, Callable[[], c.Command]], ...] = (
            (6, self._plain_create), (5, self._create), (3, self._delete), (4, self._set), (4, self._get),
            (3, self._exists), (3, self._children), (1, self._other_read), (3, self._set_acl), (1, self._auth),
            (3, self._multi), (1, self._multi_read), (1, self._watches), (2, self._connection),
        )  # fmt: skip

    def script(self, longest: int) -> c.Script:
        weights = [weight for weight, _ in self._kinds]
        kinds = [kind for _, kind in self._kinds]
        count = self._source.randint(1, longest)
        return tuple(kind() for kind in self._source.choices(kinds, weights, k=count))

    def _who(self) -> int:
        return self._source.randrange(SESSIONS)

    def _path(self) -> str:
        bad = self._source.random() < BAD_PATH_SHARE
        return self._source.choice(BAD_PATHS if bad else PATHS)

    def _flag(self) -> bool:
        return self._source.random() < 0.5

    def _data(self) -> bytes | None:
        return self._source.choice(DATA)

    def _version(self) -> int:
        return self._source.choice(VERSIONS)

    def _acl(self) -> c.Acl | None:
        if self._source.random() < 0.05:
            return self._source.choice(((), None))
        count = self._source.randint(1, 2)
        entries = [(self._source.choice(PERMISSIONS), *self._source.choice(IDENTITIES)) for _ in range(count)]
        return (*((perms, scheme, name) for perms, scheme, name in entries), CLEANER)

    def _plain_create(self) -> c.Create:
        flags = self._source.randrange(4)
        return c.Create(self._who(), self._source.choice(PATHS), self._data(), flags=flags, by=c.CREATE2)

    def _create(self) -> c.Create:
        by = self._source.choice((c.CREATE, c.CREATE2, c.CREATE_CONTAINER, c.CREATE_TTL))
        flags = self._source.choice({c.CREATE_CONTAINER: (4,), c.CREATE_TTL: (5, 6)}.get(by, (0, 1, 2, 3)))
        acl = self._acl() if self._flag() else c.OPEN
        ttl = self._source.choice((LONG, LONG, 0, 1 << 41)) if by == c.CREATE_TTL else 0
        return c.Create(self._who(), self._path(), self._data(), acl, flags, by, ttl)

    def _delete(self) -> c.Delete:
        return c.Delete(self._who(), self._path(), self._version())

    def _set(self) -> c.Set:
        return c.Set(self._who(), self._path(), self._data(), self._version())

    def _check(self) -> c.Check:
        return c.Check(self._who(), self._path(), self._version())

    def _get(self) -> c.Get:
        return c.Get(self._who(), self._path(), self._flag())

    def _exists(self) -> c.Exists:
        return c.Exists(self._who(), self._path(), self._flag())

    def _children(self) -> c.Request:
        kind = self._source.choice((c.Children, c.Children2))
        return kind(self._who(), self._path(), self._flag())

    def _other_read(self) -> c.Command:
        kind = self._source.choice((c.GetAcl, c.Count, c.Ephemerals, c.Sync))
        return kind(self._who(), self._path())

    def _set_acl(self) -> c.SetAcl:
        return c.SetAcl(self._who(), self._path(), self._acl(), self._version())

    def _auth(self) -> c.AddAuth:
        return c.AddAuth(self._who(), "digest", self._source.choice((b"anna:secret", b"bert:secret", b"anna:other")))

    def _multi(self) -> c.Multi:
        kinds = (self._multi_create, self._multi_create, self._delete, self._set, self._check)
        count = self._source.randint(0, 4)
        return c.Multi(self._who(), tuple(self._source.choice(kinds)() for _ in range(count)))

    def _multi_create(self) -> c.Create:
        return c.Create(self._who(), self._path(), self._data(), flags=self._source.randrange(4))

    def _multi_read(self) -> c.MultiRead:
        kinds = (self._get, lambda: c.Children(self._who(), self._path()))
        count = self._source.randint(1, 3)
        return c.MultiRead(self._who(), tuple(self._source.choice(kinds)() for _ in range(count)))

    def _watches(self) -> c.Command:
        kind = self._source.choice((c.CheckWatches, c.RemoveWatches))
        return kind(self._who(), self._source.choice(PATHS), ANY_TYPE)

    def _connection(self) -> c.Command:
        who = self._who()
        paths = [tuple(self._source.sample(PATHS, self._source.randrange(3))) for _ in range(3)]
        return self._source.choice((
            c.Connect(who, self._source.randrange(3)), c.Connect(who), c.Drop(who), c.Close(who),
            c.SetWatches(who, paths[0], paths[1], paths[2]),
        ))  # fmt: skip

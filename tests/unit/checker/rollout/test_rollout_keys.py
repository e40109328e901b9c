"""The keys of a zoo.cfg in the planner: each key of the guide has an effect, by its value.

The names are those of the Administrator's Guide of 3.9.5. What the source of 3.9.5 reads from a file is said by
`QuorumPeerConfig.parseProperties`, and by the names of the system properties in its classes.
"""

from pathlib import Path

import pytest

from checker.rollout.files.differences import MODELLED
from checker.rollout.files.keys import Effect, effect_of

GUIDE = (Path(__file__).parents[3] / "fixtures" / "guide_keys.txt").read_text(encoding="utf-8").split()


@pytest.mark.parametrize("key", GUIDE)
def test_each_key_of_the_guide_is_known(key: str) -> None:
    assert key in MODELLED or effect_of(key, "1").effect is not Effect.UNKNOWN


@pytest.mark.parametrize("key", ["ticktime", "snapcount", "my.plugin", "sslquorum"])
def test_a_key_in_another_spelling_is_unknown(key: str) -> None:
    assert effect_of(key, "1").effect is Effect.UNKNOWN


@pytest.mark.parametrize(
    ("key", "note"),
    [
        ("jute.maxbuffer", "-Djute.maxbuffer"),  # `BinaryInputArchive` reads `jute.maxbuffer`, without the prefix
        ("maxTimeToWaitForEpoch", "leader.maxTimeToWaitForEpoch"),  # `Leader.MAX_TIME_TO_WAIT_FOR_EPOCH`
        ("requestThrottleLimit", "request_throttle_max_requests"),  # `RequestThrottler`
        ("zookeeper.superUser", "without zookeeper."),  # it would become `zookeeper.zookeeper.superUser`
    ],
)
def test_a_key_that_the_file_cannot_have_is_named_as_it_must_be_given(key: str, note: str) -> None:
    effect = effect_of(key, "1")
    assert effect.effect is Effect.IGNORED
    assert note in effect.note


@pytest.mark.parametrize(
    ("key", "value", "effect"),
    [
        ("forceSync", "yes", Effect.LOCAL),
        ("forceSync", None, Effect.LOCAL),
        ("forceSync", "true", Effect.DURABILITY),  # only `yes` syncs (`FileTxnLog`)
        ("snapshot.trust.empty", "TRUE", Effect.DURABILITY),  # `Boolean.getBoolean` ignores case
        ("snapshot.trust.empty", "yes", Effect.LOCAL),
    ],
)
def test_an_effect_depends_on_the_value(key: str, value: str | None, effect: Effect) -> None:
    assert effect_of(key, value).effect is effect

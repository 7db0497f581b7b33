"""What a random walk chooses from: few ids, keys and queues, so that jobs meet."""

from typing import Any

from hypothesis import strategies as st

from windlass.core.flow.queue import NO_LIMIT
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.moments import DAY, SECOND

IDS = [f"00000000-0000-7000-8000-{n:012d}" for n in range(40)]
ids = st.one_of(st.sampled_from(IDS[:6]), st.sampled_from(IDS))
queues, orders = st.sampled_from(["a", "b"]), st.permutations(["a", "b"])
fields: dict[str, st.SearchStrategy[Any]] = {
    "id": ids,
    "queue": queues,
    "type": st.sampled_from(["t", "t", "t", "strange"]),
    "priority": st.integers(-1, 1),
    "delay": st.sampled_from([0, 0, 0, SECOND, 100 * SECOND]),
    "idempotency_key": st.sampled_from([None, None, "k", "l"]),
    "idempotency_window": st.sampled_from([None, None, 10 * SECOND, 9 * DAY]),
    "on_conflict": st.sampled_from(list(OnConflict)),
    "expires": st.sampled_from([None, None, None, SECOND, 100 * SECOND]),
    "max_attempts": st.sampled_from([None, 1, 2]),
    "concurrency_key": st.sampled_from([None, None, "x", "y"]),
    "key_limit": st.sampled_from([None, None, 2]),
    "key_strict": st.sampled_from([None, True]),
}
first_fields = {
    "priority": st.integers(-1, 1),
    "idempotency_key": st.sampled_from(["k", "l", None]),
    "idempotency_window": st.sampled_from([10 * SECOND, 9 * DAY, None]),
    "expires": st.sampled_from([100 * SECOND, SECOND, None]),
    "concurrency_key": st.sampled_from(["x", "y", None]),
    "key_limit": st.sampled_from([2, None]),
    "key_strict": st.sampled_from([True, None]),
}
link_fields = {name: fields[name] for name in ("queue", "delay", "expires", "concurrency_key", "idempotency_key")}
"""What may be different from link to link."""
changes = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.integers(-1, 1),
        "delay": st.sampled_from([0, SECOND, 100 * SECOND]),
        "queue": queues,
    },
)
waits = st.sampled_from([0, 0, SECOND, 12 * SECOND])
picks = st.one_of(st.integers(0, 3), st.integers(0, 99))
"""Which of the things at hand: taken modulo their number, the newest first."""
limits = st.sampled_from([1, 2, 3, NO_LIMIT])

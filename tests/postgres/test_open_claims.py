"""What a process remembers of its claims: a hint that has a bound."""

import pytest

from windlass.store.postgres.verbs import open_claims
from windlass.store.postgres.verbs.open_claims import OpenClaims


def test_a_repeated_claim_is_counted_once() -> None:
    claims = OpenClaims()
    for _ in range(2):
        claims.take("r", 1, ["a", "b"])
    claims.end(["a", "b"])
    assert claims.due("r") == {1: 0}


def test_jobs_that_another_process_ends_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_claims, "MAX_JOBS", 10)
    claims = OpenClaims()
    for number in range(100):
        claims.take("r", number, [f"job {number}"])
    assert len(claims._claims) <= 10
    assert len(claims._sizes) <= 10
    claims.end(["job 99"])
    assert claims.due("r") == {99: 0}

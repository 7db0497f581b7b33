"""Hints are spent like tokens."""

from windlass.core.flow.rate import TokenBucket, full
from windlass.core.hints import HINT_RATE, spend_hint
from windlass.core.moments import SECOND, Micros

INTERVAL = SECOND // HINT_RATE.tokens


def _sent(token_bucket: TokenBucket, moments: list[Micros]) -> list[Micros]:
    """Those of these moments at which a hint is sent at once."""
    sent = []
    for now in moments:
        token_bucket, wait = spend_hint(token_bucket, now)
        if not wait:
            sent.append(now)
    return sent


def test_hints_slower_than_the_rate_are_all_sent_at_once() -> None:
    moments = [n * INTERVAL for n in range(1_000)]
    assert _sent(full(HINT_RATE, 0), moments) == moments


def test_a_burst_is_sent_at_once_and_what_follows_waits_for_tokens() -> None:
    sent = _sent(full(HINT_RATE, 0), [0] * (HINT_RATE.burst + 10))
    assert len(sent) == HINT_RATE.burst


def test_however_many_are_asked_for_no_more_than_the_rate_are_sent() -> None:
    moments = [n * SECOND // 5_000 for n in range(5_000)]
    assert len(_sent(full(HINT_RATE, 0), moments)) == HINT_RATE.burst + HINT_RATE.tokens - 1


def test_the_wait_is_until_the_next_token_and_then_there_is_one() -> None:
    token_bucket = TokenBucket(0, HINT_RATE.period, 0)
    token_bucket, wait = spend_hint(token_bucket, INTERVAL // 4)
    assert wait == INTERVAL - INTERVAL // 4
    assert spend_hint(token_bucket, INTERVAL // 4 + wait)[1] == 0


def test_tokens_are_saved_up_to_the_burst_only() -> None:
    later = 3_600 * SECOND
    assert len(_sent(TokenBucket(0, HINT_RATE.period, 0), [later] * 1_000)) == HINT_RATE.burst


def test_a_clock_that_goes_back_neither_gives_nor_takes_tokens() -> None:
    token_bucket, wait = spend_hint(full(HINT_RATE, SECOND), 0)
    assert (wait, token_bucket.tokens) == (0, HINT_RATE.burst - 1)

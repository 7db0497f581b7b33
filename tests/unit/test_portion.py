"""How many go with one call."""

import pytest

from windlass.store.redis.connection.portion import MAX_TEXT, first_portion


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        ([], 0),
        ([1] * 5, 3),
        ([MAX_TEXT, 1], 1),
        ([MAX_TEXT - 1, 1, 1], 2),
        ([MAX_TEXT + 1, 1], 1),
        ([1, MAX_TEXT + 1], 1),
    ],
)
def test_a_portion_is_bounded_by_number_and_by_text_and_never_nothing(texts: list[int], first: int) -> None:
    assert len(first_portion(texts, lambda text: text, 3)) == first

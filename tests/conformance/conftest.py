"""The rules of verbs hold at once here, however busy the machine."""

import pytest

from windlass.store.postgres.limits import throttle


@pytest.fixture(autouse=True)
def _unthrottled(monkeypatch: pytest.MonkeyPatch) -> None:
    """On PostgreSQL a scan that takes long is made less often, and what it finds comes later."""
    monkeypatch.setattr(throttle, "SHARE", 0)

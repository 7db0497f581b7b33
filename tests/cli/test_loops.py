"""On which event loop the processes run that are to live for months."""

import asyncio
from typing import Any

import pytest

from tests.cli.terminal import Terminal
from windlass.cli import dev, run
from windlass.client.runtime.loops import loop_factory


@pytest.mark.parametrize(
    ("module", "service", "command"),
    [
        (run, "_work", ("worker", "shop:app")),
        (run, "_coordinate", ("coordinator",)),
        (dev, "_develop", ("dev", "shop:app")),
    ],
)
def test_a_long_lived_process_runs_on_the_loop_that_does_not_grow(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, module: Any, service: str, command: tuple[str, ...]
) -> None:
    used: list[asyncio.AbstractEventLoop] = []

    async def serve(*_: object) -> int:
        used.append(asyncio.get_running_loop())
        return 0

    monkeypatch.setattr(module, service, serve)
    terminal.ok(*command)
    assert [type(loop) for loop in used] == [loop_factory()]

"""The line between a supervisor and a runner: what is said arrives in order, and its end is heard."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from windlass.worker.channel import (
    Cancel,
    Channel,
    FromRunner,
    FromSupervisor,
    Hello,
    Hint,
    LeaseGranted,
    LeaseLapsed,
    StartFailed,
    Stop,
)


@pytest.fixture
async def ends() -> AsyncIterator[tuple[Channel, Channel]]:
    """The supervisor's end and the runner's."""
    ours, theirs = socket.socketpair()
    supervisor, runner = await Channel.over(ours), await Channel.over(theirs)
    yield supervisor, runner
    supervisor.close()
    runner.close()
    await asyncio.sleep(0)


async def test_what_the_runner_says_arrives_in_order(ends: tuple[Channel, Channel]) -> None:
    supervisor, runner = ends
    said: list[FromRunner] = [
        Hello("sqlite:///x.db", ("default",), ("t",)),
        LeaseLapsed("r1"),
        StartFailed("line one\nline two \u2028 ü"),
    ]
    for message in said:
        runner.send(message)
    runner.close()
    assert [message async for message in supervisor.from_runner()] == said


async def test_what_the_supervisor_says_arrives_in_order(ends: tuple[Channel, Channel]) -> None:
    supervisor, runner = ends
    said: list[FromSupervisor] = [LeaseGranted("r1", 1), Cancel("id", 2), Stop(5), Stop(0)]
    for message in said:
        supervisor.send(message)
    supervisor.close()
    assert [message async for message in runner.from_supervisor()] == said


async def test_an_app_with_very_many_types_says_hello(ends: tuple[Channel, Channel]) -> None:
    supervisor, runner = ends
    hello = Hello("sqlite:///x.db", ("default",), tuple(f"shop.task_number_{n}" for n in range(5000)))
    runner.send(hello)
    async with asyncio.timeout(10):
        assert await anext(supervisor.from_runner()) == hello


async def test_the_end_of_the_connection_is_noticed_also_in_the_middle_of_a_message(
    ends: tuple[Channel, Channel],
) -> None:
    supervisor, runner = ends
    runner.send(LeaseLapsed("r1"))
    runner._writer.write(b'{"type":"Lap')
    runner.close()
    assert [message async for message in supervisor.from_runner()] == [LeaseLapsed("r1")]


async def test_sending_on_a_closed_connection_is_no_error(ends: tuple[Channel, Channel]) -> None:
    supervisor, runner = ends
    runner.close()
    assert [message async for message in supervisor.from_runner()] == []
    runner.send(LeaseLapsed("r1"))
    supervisor.send(LeaseGranted("r1", 1))
    supervisor.close()
    supervisor.send(LeaseGranted("r1", 1))


async def test_hints_to_a_runner_that_does_not_read_do_not_pile_up(ends: tuple[Channel, Channel]) -> None:
    supervisor, runner = ends
    runner._writer.transport.pause_reading()  # type: ignore[attr-defined]
    for _ in range(100_000):
        supervisor.hint(Hint())
    assert supervisor._writer.transport.get_write_buffer_size() < 100

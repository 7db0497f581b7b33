"""A bad call is refused at the producer: it says what is wrong and what the limit is, and stores nothing."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.abuse_input.rows import BAD_NAMES, BLOBS, CHANGES, OPTIONS, PAYLOADS, Reading
from tests.client.labour import total
from windlass import (
    App,
    ConfigError,
    EnqueueFailed,
    InvalidInput,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    JobNotFound,
    PayloadTooLarge,
    Task,
)


@pytest.fixture
def app(address: str) -> Iterator[App]:
    made = App(address)
    yield made
    made.close()


@pytest.fixture
def task(app: App) -> Iterator[Task[..., Any, Any]]:
    """A task that takes anything, one int, and a dataclass; and a look afterwards that nothing was stored."""

    @app.task(type="t")
    def task(thing: Any = None, number: int = 0, reading: Reading | None = None) -> None: ...

    app.stats.counts()
    yield task
    assert total(app) == 0


@pytest.mark.parametrize("row", PAYLOADS)
def test_an_argument_that_json_would_lose_is_refused(task: Task[..., Any, Any], row: str) -> None:
    arguments, problem, _ = PAYLOADS[row]
    with pytest.raises(InvalidPayload, match=problem) as caught:
        task.enqueue(**arguments)
    assert caught.value.field.startswith(next(iter(arguments)))
    assert len(str(caught.value)) < 500


def test_too_many_positional_arguments_are_refused(task: Task[..., Any, Any]) -> None:
    with pytest.raises(InvalidPayload, match=r"^arguments: t takes 3 by position, not 4"):
        task.enqueue(1, 2, None, 4)


def test_an_argument_given_twice_is_refused(task: Task[..., Any, Any]) -> None:
    with pytest.raises(InvalidPayload, match=r"^thing: is given to t twice"):
        task.enqueue(1, thing=2)


def test_a_missing_argument_is_named_with_all_that_are_needed(app: App) -> None:
    @app.task
    def move(source: str, target: str) -> None: ...

    with pytest.raises(InvalidPayload, match=r"^target: is missing: move needs source, target"):
        move.enqueue("a")  # type: ignore[call-arg]


FRAME = len('{"thing":""}')


@pytest.mark.parametrize(
    ("thing", "size"),
    [("x" * (65_537 - FRAME), 65_537), ("ü" * 32_800, 65_612), ("x" * 50_000_000, 50_000_012)],
    ids=["15 one byte too many", "15 bytes count, not characters", "16 50 MB"],
)
def test_a_payload_over_the_limit_is_refused_with_its_size_and_the_limit(
    task: Task[..., Any, Any], thing: str, size: int
) -> None:
    with pytest.raises(PayloadTooLarge, match=f"^payload: is {size:,} bytes of JSON, the limit is 65,536"):
        task.enqueue(thing)


@pytest.mark.parametrize("row", BLOBS)
def test_a_place_for_large_payloads_that_is_none_is_refused(address: str, row: str) -> None:
    place, problem = BLOBS[row]
    with pytest.raises(ConfigError, match=problem) as caught:
        App(address, blobs=place).offload()
    assert str(caught.value).isprintable()


def test_a_folder_that_cannot_be_made_is_said(app: App, task: Task[..., Any, Any], tmp_path: Path) -> None:
    app._location.blobs = str(tmp_path / "missing" / "blobs")
    with pytest.raises(EnqueueFailed, match=r"cannot be written: .* does not exist: make it, or mount it"):
        task.enqueue("x" * 100_000)


@pytest.mark.parametrize("option", ["queue", "tenant"])
@pytest.mark.parametrize("row", BAD_NAMES)
def test_a_bad_name_is_refused(task: Task[..., Any, Any], option: str, row: str) -> None:
    with pytest.raises(InvalidName, match=f"^{option}: ") as caught:
        task.using(**{option: BAD_NAMES[row]}).enqueue()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("row", OPTIONS)
def test_a_bad_option_is_refused(task: Task[..., Any, Any], row: str) -> None:
    options, error, problem = OPTIONS[row]
    with pytest.raises(error, match=problem) as caught:
        task.using(**options).enqueue()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("row", CHANGES)
def test_a_bad_change_is_refused_and_changes_nothing(app: App, task: Task[..., Any, Any], row: str) -> None:
    change, error, problem = CHANGES[row]
    id_ = task.using(delay=60).enqueue(thing=1).id
    before = app.jobs.get(id_)
    with pytest.raises(error, match=problem) as caught:
        app.jobs.change(id_, **change)
    assert len(str(caught.value)) < 500
    assert app.jobs.get(id_) == before
    app.jobs.cancel(id_)
    app.jobs.delete(id_)


@pytest.mark.parametrize("call", [lambda task: task, lambda task: None, lambda task: {"type": "t"}])
def test_one_wrong_entry_of_a_batch_is_named_and_nothing_of_it_is_stored(
    app: App, task: Task[..., Any, Any], call: Callable[[Any], Any]
) -> None:
    batch = [task.job(n) for n in range(100)]
    batch[42] = call(task)
    with pytest.raises(InvalidOption, match=r"^jobs\[42\]: is not a job; make it with task\.job\(\.\.\.\)"):
        app.enqueue_many(batch)


@pytest.mark.parametrize("verb", ["get", "cancel", "retry", "delete", "run_now", "find"])
@pytest.mark.parametrize("id_", ["42", "../", "0" * 2**20, ""])
def test_a_verb_refuses_an_id_that_is_none(app: App, task: Task[..., Any, Any], verb: str, id_: str) -> None:
    with pytest.raises(InvalidName if verb == "find" else JobNotFound) as refused:
        getattr(app.jobs, verb)(id_)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"status": "done"}, "status"),
        ({"status": ["dead", "done"]}, "status"),
        ({"type": "a b"}, "type"),
        ({"queue": "a b"}, "queue"),
        ({"tag": "'"}, "tag"),
        ({"tenant": ""}, "tenant"),
        ({"parent": "42"}, "parent"),
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"cursor": "forged"}, "cursor"),
    ],
)
def test_a_list_refuses_a_wrong_filter(
    app: App, task: Task[..., Any, Any], wanted: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput, match=f"^{field}: "):
        app.jobs.list(**wanted)

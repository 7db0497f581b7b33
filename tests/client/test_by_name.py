"""Jobs by the name of their type, jobs that enqueue themselves, and tasks that look like their functions."""

import inspect
from typing import Any, get_type_hints

import pytest

from tests.client.labour import Labour
from windlass import (
    App,
    Context,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    State,
    Status,
    Steps,
    Task,
    TaskSet,
    UseAsync,
)


def welcome(user_id: int, *, lang: str = "en") -> str:
    """Greets a user."""
    return f"{lang} {user_id}"


@pytest.fixture
def task(app: App) -> Task[..., str, str]:
    """A task of many options."""
    return app.task(type="mail.welcome", queue="mail", max_attempts=7, aliases=["greet"])(welcome)


def test_a_known_type_has_the_options_of_its_task(app: App, task: Task[..., str, str]) -> None:
    job = app.enqueue("mail.welcome", {"user_id": 42}, delay="5m", priority=3).job()
    assert (job.type, job.payload, job.queue, job.max_attempts) == ("mail.welcome", {"user_id": 42}, "mail", 7)
    assert (job.status, job.priority) == (Status.SCHEDULED, 3)
    assert app.enqueue("greet", {"user_id": 1}).job().type == "mail.welcome"


def test_the_arguments_of_a_known_type_are_checked(app: App, task: Task[..., str, str]) -> None:
    with pytest.raises(InvalidPayload, match="user_id: expected int, got str"):
        app.enqueue("mail.welcome", {"user_id": "42"})
    with pytest.raises(InvalidPayload, match="user_id: is missing"):
        app.enqueue("mail.welcome")
    with pytest.raises(InvalidPayload, match="payload: must be a mapping"):
        app.enqueue("mail.welcome", 42)  # type: ignore[arg-type]
    assert app.jobs.count() == 0


def test_another_type_is_stored_for_a_worker_that_knows_it(app: App) -> None:
    job = app.enqueue("elsewhere", {"x": [1, None]}, queue="mail", tags=["a"], retry=Steps(1, 5)).job()
    assert (job.type, job.payload, job.queue, job.tags) == ("elsewhere", {"x": [1, None]}, "mail", ("a",))
    assert job.max_attempts == 3
    assert app.enqueue("bare").job().payload == {}


@pytest.mark.parametrize(
    ("type_", "payload", "options", "error"),
    [
        ("no spaces", {}, {}, InvalidName),
        (5, {}, {}, InvalidName),
        ("t", [1], {}, InvalidPayload),
        ("t", {"x": float("nan")}, {}, InvalidPayload),
        ("t", {}, {"dealy": 5}, InvalidOption),
        ("t", {}, {"on_conflict": "raise"}, InvalidOption),
    ],
)
def test_nonsense_is_refused_and_nothing_stored(
    app: App, type_: Any, payload: Any, options: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        app.enqueue(type_, payload, **options)
    assert app.jobs.count() == 0


def test_an_id_makes_it_safe_to_repeat(app: App) -> None:
    handle = app.enqueue("elsewhere", {"x": 1})
    again = app.enqueue("elsewhere", {"x": 2}, id=handle)
    assert (again, again.existing) == (handle, True)


async def test_on_a_loop_there_is_aenqueue(app: App, task: Task[..., str, str]) -> None:
    assert (await (await app.aenqueue("mail.welcome", {"user_id": 1})).ajob()).queue == "mail"
    assert (await (await task.job(2).aenqueue()).ajob()).payload == {"user_id": 2}
    with pytest.raises(UseAsync):
        task.job(3).enqueue()
    await app.aclose()


def test_a_job_enqueues_itself_once(app: App, task: Task[..., str, str], labour: Labour) -> None:
    job = task.using(queue="default", tenant="acme").job(1)
    handle = job.enqueue()
    assert handle == job.enqueue()
    assert (handle.id, handle.job().tenant, app.jobs.count()) == (job.id, "acme", 1)
    labour.complete('"done"')
    assert handle.result(timeout="10s") == "done"


def test_tasks_are_found_by_type(app: App, task: Task[..., str, str]) -> None:
    more = TaskSet(prefix="more.")
    early = more.task(type="early")(welcome)
    app.include(more)
    late = more.task(type="late")(welcome)
    assert dict(app.tasks) == {"mail.welcome": task, "more.early": early, "more.late": late}
    assert app.tasks["more.late"].enqueue(1).job().type == "more.late"
    with pytest.raises(TypeError):
        app.tasks["x"] = task  # type: ignore[index]


def test_a_task_looks_like_its_function(app: App, task: Task[..., str, str]) -> None:
    for each in (task, task.using(priority=1)):
        assert inspect.signature(each) == inspect.signature(welcome)
        assert (each.__module__, each.__qualname__, each.__name__) == (__name__, "welcome", "welcome")
        assert (each.__doc__, each.__wrapped__) == ("Greets a user.", welcome)
        assert get_type_hints(each) == get_type_hints(welcome)
        assert each(1, lang="de") == "de 1"


class Services(State):
    """State with a type."""

    limit: int


def test_a_context_may_name_the_type_of_its_state() -> None:
    app = App.testing()

    @app.task
    def bounded(ctx: Context[Services], number: int) -> int:
        return min(number, ctx.state.limit)

    @app.task
    def quoted(ctx: "Context[Missing]", number: int) -> int:  # type: ignore[name-defined]  # noqa: F821
        return number

    assert bounded.job(5).payload == '{"number":5}'
    assert quoted.job(5).payload == '{"number":5}'


def test_the_state_may_be_made_by_the_program() -> None:
    services = Services()
    assert App("sqlite:///x.db", state=services).state is services

"""From a call to a payload and back: what a worker gets is what the producer gave."""

import enum
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, Optional
from uuid import UUID

import msgspec
import pytest

from tests.client.labour import payload_of
from windlass import App, Context, InvalidPayload, PayloadTooLarge


def restored(app: App, type_: str) -> dict[str, Any]:
    """The arguments that a worker would call the task with."""
    stored = app.jobs.list(type=type_).items[0].payload
    return app.registry.get(type_).signature.decode(msgspec.json.encode(stored).decode())


def test_arguments_are_bound_by_name_and_defaults_left_out(app: App) -> None:
    @app.task
    def resize(album: str, path: str = "x", *, width: int = 3, height: int = 4) -> None: ...

    resize.enqueue("a", height=9)
    assert payload_of(app) == {"album": "a", "height": 9}


def test_a_default_that_is_given_is_kept(app: App) -> None:
    """The code's default may change before the job runs; what was said stays said."""

    @app.task
    def resize(width: int = 3) -> None: ...

    resize.enqueue(3)
    assert payload_of(app) == {"width": 3}


def test_no_arguments_are_an_empty_object(app: App) -> None:
    @app.task
    def nothing() -> None: ...

    nothing.enqueue()
    assert payload_of(app) == {}


def test_the_context_is_not_part_of_the_payload_at_any_position(app: App) -> None:
    @app.task
    def first(ctx: Context, number: int) -> None: ...

    @app.task
    def last(number: int, *, context: Context) -> None: ...

    assert first.job(1).payload == '{"number":1}'
    assert last.job(1).payload == '{"number":1}'  # type: ignore[call-arg]
    assert (first.definition.signature.context, last.definition.signature.context) == ("ctx", "context")


def test_extra_keywords_are_kept_beside_the_declared_ones(app: App) -> None:
    @app.task
    def send(to: int, **extra: Any) -> None: ...

    send.enqueue(1, subject="hi", cc=[2])
    assert payload_of(app) == {"to": 1, "subject": "hi", "cc": [2]}
    assert restored(app, "send") == {"to": 1, "subject": "hi", "cc": [2]}


def test_the_context_cannot_be_given_as_an_extra_keyword(app: App) -> None:
    @app.task
    def send(ctx: Context, **extra: Any) -> None: ...

    with pytest.raises(InvalidPayload, match="ctx: is not an argument of send"):
        send.enqueue(ctx=5)  # type: ignore[arg-type]


def test_a_declared_parameter_beside_extra_keywords_is_still_checked(app: App) -> None:
    @app.task
    def send(to: int, **extra: Any) -> None: ...

    with pytest.raises(InvalidPayload, match=r"^to: expected int, got str"):
        send.enqueue("1", subject="hi")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "field", "problem"),
    [
        ({"user_id": "1"}, "user_id", "expected int, got str"),
        ({"user_id": date(2026, 1, 2)}, "user_id", "expected int, got date"),
        ({"user_id": Decimal(1)}, "user_id", "expected int, got Decimal"),
        ({"user_id": 1, "others": [2, date(2026, 1, 2)]}, "others[1]", "expected int, got date"),
        ({"user_id": 1, "by_name": {"ann": "x"}}, "by_name[...]", "expected int, got str"),
        ({"user_id": 1, "thing": {1}}, "thing", "set is not JSON; annotate the parameter, or convert it"),
    ],
    ids=str,
)
def test_a_wrong_type_is_called_what_it_was_and_the_task_by_its_type(
    app: App, given: dict[str, Any], field: str, problem: str
) -> None:
    @app.task(type="mail.welcome")
    def welcome(
        user_id: int, others: tuple[int, ...] = (), by_name: dict[str, int] | None = None, thing: Any = None
    ) -> None: ...

    with pytest.raises(InvalidPayload) as caught:
        welcome.enqueue(**given)
    assert str(caught.value) == f"{field}: {problem} (task mail.welcome)"
    assert caught.value.field == field


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: int
    y: float = 0.5


class Order(msgspec.Struct):
    number: int
    lines: list[Point] = []


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, 2**53 + 1),
        (float, -0.0),
        (float, 1.0),
        (str, "\x00 ␀ ünï 🧵"),
        (bool, False),
        (list[int], [1, 2, 3]),
        (dict[str, list[int]], {"z": [1], "a": [2]}),
        (dict[int, str], {1: "a"}),
        (tuple[int, str], (1, "a")),
        (set[int], {1, 2}),
        (bytes, b"\x00\xff"),
        (datetime, datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
        (date, date(2026, 1, 2)),
        (timedelta, timedelta(days=1, microseconds=5)),
        (Decimal, Decimal("1.10")),
        (UUID, UUID("01890000-0000-7000-8000-000000000000")),
        (Optional[int], None),  # noqa: UP045
        (int | None, 5),
        (Literal["a", "b"], "b"),
        (Colour, Colour.RED),
        (Level, Level.HIGH),
        (Point, Point(1, 2.5)),
        (Order, Order(7, [Point(1), Point(2, 3.0)])),
        (list[Point], [Point(1)]),
        (Any, {"deep": [1, None, True, "x", 1.5]}),
    ],
    ids=str,
)
def test_a_typed_argument_comes_back_as_it_was(app: App, kind: Any, value: Any) -> None:
    def keep(thing: Any) -> None: ...

    keep.__annotations__["thing"] = kind
    app.task(type="keep")(keep).enqueue(value)
    back = restored(app, "keep")["thing"]
    assert (back, type(back), repr(back)) == (value, type(value), repr(value))


def test_a_pydantic_model_is_checked_stored_and_restored(app: App) -> None:
    pydantic = pytest.importorskip("pydantic")
    User = pydantic.create_model("User", name=(str, ...), born=(date, ...))

    def greet(user: Any) -> None: ...

    greet.__annotations__["user"] = User
    task = app.task(type="greet")(greet)
    task.enqueue(User(name="Ada", born=date(1815, 12, 10)))
    assert payload_of(app) == {"user": {"name": "Ada", "born": "1815-12-10"}}
    assert restored(app, "greet") == {"user": User(name="Ada", born=date(1815, 12, 10))}
    with pytest.raises(InvalidPayload, match="user"):
        task.enqueue({"name": "Ada"})


class Plain:
    """What pydantic looks like to us: two methods."""

    def __init__(self, text: str) -> None:
        self.text = text

    def model_dump(self, *, mode: str, by_alias: bool) -> dict[str, str]:
        assert (mode, by_alias) == ("json", True)
        return {"text": self.text}

    @classmethod
    def model_validate_json(cls, value: bytes) -> "Plain":
        return cls(msgspec.json.decode(value)["text"])


def test_a_class_with_a_dump_and_a_validation_of_its_own_needs_no_pydantic(app: App) -> None:
    @app.task
    def keep(thing: Plain) -> None: ...

    keep.enqueue(Plain("x"))
    assert payload_of(app) == {"thing": {"text": "x"}}
    assert restored(app, "keep")["thing"].text == "x"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"\x00": "\x00"}, '{"\\u0000":"\\u0000"}'),
        ([-0.0, 0, 1, 1.0], "[-0.0,0,1,1.0]"),
        (2**63 - 1, "9223372036854775807"),
        (((1, 2), [3]), "[[1,2],[3]]"),
        (None, "null"),
    ],
    ids=[
        "1 NUL in key and value",
        "7 numbers stay what they are",
        "6 largest integer",
        "13 tuples are lists",
        "18 null",
    ],
)
def test_plain_json_is_stored_as_it_is_written(app: App, given: Any, kept: str) -> None:
    @app.task
    def keep(thing: Any) -> None: ...

    job = keep.job(given)
    assert job.payload == f'{{"thing":{kept}}}'
    app.enqueue_many([job])
    assert msgspec.json.encode(payload_of(app)).decode() == job.payload


def test_key_order_is_kept(app: App) -> None:
    @app.task
    def keep(thing: dict[str, int]) -> None: ...

    keep.enqueue({"z": 1, "a": 2, "m": 3})
    assert list(payload_of(app)["thing"]) == ["z", "a", "m"]


def test_json_from_outside_is_checked_like_a_call(app: App) -> None:
    @app.task
    def resize(width: int, when: datetime | None = None) -> None: ...

    signature = resize.definition.signature
    assert (
        signature.check({"width": 3, "when": "2026-01-01T00:00:00Z"}) == '{"width":3,"when":"2026-01-01T00:00:00Z"}'
    )
    for wrong in ({}, {"width": "3"}, {"width": 3, "heigth": 4}, [3], None, "3"):
        with pytest.raises(InvalidPayload):
            signature.check(wrong)


@pytest.mark.parametrize(
    ("given", "option"), [("delay", "delay"), ("queue", "queue"), ("countdown", "delay"), ("eta", "run_at")]
)
def test_an_option_among_the_arguments_is_refused_with_where_it_belongs(app: App, given: str, option: str) -> None:
    @app.task
    def send(user: int) -> None: ...

    with pytest.raises(InvalidPayload) as refused:
        send.enqueue(1, **{given: 60})
    assert f"{given}: is not an argument of send" in str(refused.value)
    assert f"`send.using({option}=…).enqueue(…)`" in str(refused.value)
    assert app.jobs.count() == 0


def test_an_unknown_argument_is_told_what_the_task_takes(app: App) -> None:
    @app.task
    def send(user: int, text: str = "") -> None: ...

    with pytest.raises(InvalidPayload, match="usr: is not an argument of send, which takes user, text"):
        send.enqueue(usr=1)  # type: ignore[call-arg]


def test_a_refused_call_is_checked_once_and_its_error_shown_once(app: App) -> None:
    class Text:
        dumps = 0

        def model_dump(self, **_: object) -> str:
            Text.dumps += 1
            return "x" * 70_000

    @app.task
    def note(text: str) -> None: ...

    @app.task
    def typed(text: Text) -> None: ...

    with pytest.raises(PayloadTooLarge) as caught:
        note.enqueue("x" * 70_000)
    assert caught.value.__context__ is None
    with pytest.raises(PayloadTooLarge):
        typed.enqueue(Text())
    assert Text.dumps == 2  # for its values and for its text

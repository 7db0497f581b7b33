"""The header of a Lua file is parsed and checked: a mistake is an error with file and line."""

import pytest

from windlass.store.redis.scripts.header import Header, ScriptError, parse_header
from windlass.store.redis.scripts.loader import assemble, lua_texts, script, script_names

PARTS = ("record", "lease")


def test_a_header_is_read() -> None:
    text = (
        "-- x: what it does\n--! scope: global\n--! effect: reads\n--! uses: record, lease\n--! keys: meta\nreturn 1"
    )

    header = parse_header("x.lua", text, PARTS)

    assert header == Header(effect="reads", scope="global", uses=("record", "lease"), keys=("meta",))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--! need: record", "x.lua:2: unknown word 'need'; there are effect,"),
        ("--! uses: record, recrod", "x.lua:2: no such part: recrod"),
        ("--! keys: jobs, jbos", "x.lua:2: no such key: jbos"),
        ("--! effect: changes", "x.lua:2: effect is reads or writes, not 'changes'"),
        ("--! memory: grows\n--! memory: any", "x.lua:3: memory is declared twice"),
    ],
)
def test_a_mistake_is_an_error_with_file_and_line(line: str, said: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse_header("x.lua", f"-- x: what it does\n{line}\nreturn 1", PARTS)

    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "--! effect: reads\n--! keys: jobs\nredis.call('HDEL', K.jobs, 'x')",
            "x.lua: effect is reads, and it runs HDEL",
        ),
        ("--! effect: writes\n--! keys: jobs\nreturn 1", "x.lua: effect is writes, and it runs no write"),
        ("--! keys: jobs\nreturn redis.call('HLEN', K.ready)", "x.lua: not declared: ready"),
        ("--! scope: global\n--! keys: jobs\nreturn 1", "x.lua: not a key of scope global: jobs"),
        (
            "--! effect: writes\n--! memory: any\n--! keys: jobs\nredis.call('HDEL', K.jobs, 'x')",
            "x.lua: memory is any, and its calls say otherwise",
        ),
    ],
)
def test_a_script_that_does_something_else_is_refused(text: str, said: str) -> None:
    with pytest.raises(ScriptError) as caught:
        assemble("x", text)

    assert str(caught.value) == said


@pytest.mark.parametrize("name", script_names())
def test_every_script_says_what_it_does(name: str) -> None:
    made, header = script(name), parse_header(name, lua_texts()[name], [each[6:] for each in lua_texts()])

    assert header.effect == ("writes" if made.writes else "reads")
    assert header.memory == ({True: "grows", False: "any"}[made.grows] if made.writes else "")

"""The header of a Lua file is parsed and checked: a mistake is an error with file and line."""

import pytest

from windlass.store.redis.scripts.loader import (
    Header,
    ScriptError,
    assemble,
    lua_texts,
    parse_header,
    script,
    script_names,
)


def test_a_header_is_read() -> None:
    text = (
        "-- x: what it does\n--! scope: global\n--! effect: reads\n--! uses: record, claims\n--! keys: meta\nreturn 1"
    )

    header = parse_header("x.lua", text)

    assert header == Header(effect="reads", scope="global", uses=("record", "claims"), keys=("meta",))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--! need: record", "x.lua:2: unknown word 'need'; there are effect,"),
        ("--! uses: record, recrod", "x.lua:2: no such part: recrod"),
        ("--! effect: changes", "x.lua:2: effect is reads or writes or grows, not 'changes'"),
        ("--! store: any\n--! store: checked", "x.lua:3: store is declared twice"),
    ],
)
def test_a_mistake_is_an_error_with_file_and_line(line: str, said: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse_header("x.lua", f"-- x: what it does\n{line}\nreturn 1")

    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--! effect: reads\nredis.call('HDEL', K.jobs, 'x')", "x.lua: effect is reads, and it runs HDEL"),
        ("--! effect: grows\nreturn 1", "x.lua: effect is grows, and it runs no write"),
        ("return redis.call('HLEN', K.jbos)", "x.lua: not a key of scope queue: jbos"),
        ("--! keys: jbos\nreturn 1", "x.lua: not a key of scope queue: jbos"),
        ("--! scope: global\nreturn redis.call('HLEN', K.jobs)", "x.lua: not a key of scope global: jobs"),
    ],
)
def test_a_script_that_does_something_else_is_refused(text: str, said: str) -> None:
    with pytest.raises(ScriptError) as caught:
        assemble("x", text)

    assert str(caught.value) == said


def test_a_script_begins_with_the_check_of_its_store_and_with_a_write_that_needs_no_memory() -> None:
    reading, writing = (
        assemble("x", f"--! effect: {effect}\n{body}").text
        for effect, body in (
            ("reads", "return redis.call('HLEN', K.jobs)"),
            ("writes", "redis.call('DEL', K.jobs)"),
        )
    )

    assert "= check_store() if problem" in reading
    assert "allow_write_at_memory_limit" not in reading
    assert writing.index("= check_store() if problem") < writing.rindex("allow_write_at_memory_limit()")


@pytest.mark.parametrize("name", script_names())
def test_every_script_says_what_it_does(name: str) -> None:
    made, header = script(name), parse_header(name, lua_texts()[name])

    assert header.effect == ("grows" if made.grows else "writes" if made.writes else "reads")
    assert ("allow_write_at_memory_limit()" in made.text) == (header.effect == "writes")

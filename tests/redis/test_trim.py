"""A script carries only what it needs of its parts."""

from windlass.store.redis.scripts.loader import assemble, script
from windlass.store.redis.scripts.trim import trimmed

PART = """-- part: a few things
local ONE, TWO = 1, 2
local names = {
  one = ONE,
}

local function inner(a)
  return a
end

local function outer(a) return inner(a) + names.one end

-- Said of the next.
local function alone()
  return 'inner'  -- outer is not called
end
local later
later = function() return alone() end"""


def test_what_nothing_needs_is_left_out() -> None:
    text = trimmed([PART.replace("later = function() return alone() end", "")], "return TWO")

    assert text.endswith("return 2")
    assert "names" not in text
    assert "inner" not in text
    assert "function" not in text


def test_what_is_needed_by_what_is_needed_stays() -> None:
    text = trimmed([PART], "return outer(1)")

    assert "local function inner(a)\n  return a\nend" in text
    assert "local names = {\n  one = 1,\n}" in text


def test_a_function_that_is_said_in_two_steps_stays_with_all_that_it_needs() -> None:
    text = trimmed([PART], "return 1")

    assert "local function alone()" in text
    assert "later = function() return alone() end" in text
    assert "outer(a)" not in text


def test_what_only_a_comment_mentions_is_left_out() -> None:
    assert "function" not in trimmed([PART.partition("local later")[0]], "return 1 -- outer(1)")


def test_constants_are_written_where_they_are_used_but_not_into_strings_and_comments() -> None:
    text = trimmed(["local ONE, WORD = 1, 'w'"], "return ONE, 'ONE', WORD, r.ONE, {ONE = 2} -- ONE")

    assert text == "\nreturn 1, 'ONE', 'w', r.ONE, {ONE = 2} -- ONE"


def test_what_is_rarely_called_is_made_at_its_first_call() -> None:
    text = trimmed([PART.partition("local later")[0]], "return outer(ARGV[1])", ["outer"])
    eager, _, later = text.partition("make_lazy = function()")

    assert "local function outer(...) return make_lazy().outer(...) end" in eager
    assert "inner(a)" not in eager
    assert "local function inner(a)" in later
    assert "local function outer(a)" in later


def test_only_keys_that_are_touched_are_declared() -> None:
    counting = assemble("counting", "--! uses: indexes\nadd_count(PENDING, 1)")

    assert counting.keys == ("counts",)


def test_a_script_that_chooses_its_keys_declares_all_that_it_says() -> None:
    choosing = assemble("choosing", "--! keys: ready, due\nreturn redis.call('ZCARD', K[ARGV[1]])")

    assert choosing.keys == ("ready", "due")


def test_claims_carry_no_part_that_they_do_not_use() -> None:
    assert "local function remove_from_indexes" not in script("claim").text

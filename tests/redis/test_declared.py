"""Every key that a script touches is declared: in a cluster it may touch no other."""

import re

import pytest

from windlass.store.redis.scripts.loader import script, script_names

CALLED = re.compile(r"redis\.p?call\(\s*('\w+'|[^,)\s]+)(?:,\s*([^,)]+))?")
DECLARED = re.compile(r"KEYS\[\d+\]|K\.\w+|K\[\w+\]")
KEYLESS = {"'TIME'": "", "'PUBLISH'": "channel", "'SPUBLISH'": "channel", "'PUBSUB'": "count"}


@pytest.mark.parametrize("name", script_names())
def test_a_script_calls_nothing_but_with_a_declared_key(name: str) -> None:
    """`key` is what a part calls the one that it is given; its callers are checked, too. `...` is passed on."""
    text = script(name).text
    called = [(found[1], (found[2] or "").strip()) for found in CALLED.finditer(text)]
    strange = [
        each
        for each in called
        if not (DECLARED.fullmatch(each[1]) or each[1] == "key" or KEYLESS.get(each[0]) == each[1])
    ]
    assert strange == []
    given = re.findall(r"\b(?:along|between|add|stream)\((?!kind|key|i,|\.\.\.)([^,)]+)", text)
    assert [each for each in given if not DECLARED.fullmatch(each.strip())] == []

"""Bad limits, keys and weights, numbered as in the catalogue; the same shape as the other rows."""

from typing import Any

from windlass import InvalidInput, InvalidName, InvalidOption, InvalidTime

HUGE = 10**5000
"""Python does not even show it."""

KEY_OPTIONS: dict[str, tuple[dict[str, Any], type[InvalidInput], str]] = {
    "46 priority 10^5000": ({"priority": HUGE}, InvalidOption, "^priority: .* from -32768 to 32767, not this int"),
    "47 10^5000 attempts": ({"max_attempts": HUGE}, InvalidOption, "^max_attempts: .* from 1 to 1000, not this int"),
    "50 empty concurrency key": (
        {"concurrency_key": ""},
        InvalidName,
        "^concurrency_key: must be 1 to 512 bytes without NUL, not 0 bytes",
    ),
    "50 a concurrency key of 513 bytes": (
        {"concurrency_key": "x" * 513},
        InvalidName,
        "^concurrency_key: must be 1 to 512 bytes without NUL, not 513 bytes",
    ),
    "50 bytes count, not characters": ({"concurrency_key": "ü" * 257}, InvalidName, "^concurrency_key: .* 514 bytes"),
    "50 NUL in a concurrency key": ({"concurrency_key": "a\x00"}, InvalidName, "^concurrency_key: .* without NUL"),
    "50 surrogate": ({"concurrency_key": "\ud800"}, InvalidName, "^concurrency_key: is not valid Unicode"),
    "50 a number": ({"concurrency_key": 7}, InvalidName, "^concurrency_key: must be a string, not int"),
    "62 none at once": ({"concurrency_key": "k", "key_limit": 0}, InvalidOption, "^key_limit: .* from 1 to 10000"),
    "62 fewer than none": ({"concurrency_key": "k", "key_limit": -1}, InvalidOption, "^key_limit: .*, not -1"),
    "62 too many at once": ({"concurrency_key": "k", "key_limit": 10_001}, InvalidOption, "^key_limit: .* to 10000"),
    "62 true at once": ({"concurrency_key": "k", "key_limit": True}, InvalidOption, "^key_limit: .*, not True"),
    "62 1.5 at once": ({"concurrency_key": "k", "key_limit": 1.5}, InvalidOption, "^key_limit: .*, not 1.5"),
    "62 10^5000 at once": ({"concurrency_key": "k", "key_limit": HUGE}, InvalidOption, "^key_limit: .* this int"),
    "62 a limit without a key": (
        {"key_limit": 2},
        InvalidOption,
        "^key_limit: has no effect without a concurrency_k",
    ),
    "62 an order without a key": (
        {"key_order": "any"},
        InvalidOption,
        "^key_order: has no effect without a concurre",
    ),
    "62 an unknown order": (
        {"concurrency_key": "k", "key_order": "fifo"},
        InvalidOption,
        "^key_order: 'fifo' is not one of strict, any",
    ),
    "62 an order that is a list": ({"concurrency_key": "k", "key_order": []}, InvalidOption, "^key_order: "),
    "62 a rate without a key": (
        {"key_rate": "1/s"},
        InvalidOption,
        "^key_rate: has no effect without a concurrency_k",
    ),
    "62 a rate of nothing": (
        {"concurrency_key": "k", "key_rate": "0/s"},
        InvalidOption,
        "^key_rate: must let 1 to 1000000 jobs start in a period, not 0",
    ),
    "62 a rate that is a number": (
        {"concurrency_key": "k", "key_rate": 5},
        InvalidOption,
        "^key_rate: must be text",
    ),
    "62 a start for nothing": ({"rate_cost": 0}, InvalidOption, "^rate_cost: .* from 1 to 1000000, not 0"),
    "62 a start that pays": ({"rate_cost": -1}, InvalidOption, "^rate_cost: .*, not -1"),
    "62 a start that costs more than the token bucket holds": (
        {"rate_cost": 1_000_001},
        InvalidOption,
        "^rate_cost: .* to 1000000, not 1000001",
    ),
    "62 a cost above the burst of its key": (
        {"concurrency_key": "k", "key_rate": "5/s", "rate_cost": 6},
        InvalidOption,
        "^rate_cost: is 6, more than the 5 that a key_rate of 5/s can save up",
    ),
}

SETTINGS: dict[str, tuple[dict[str, Any], type[InvalidInput], str]] = {
    "47 no attempts": ({"max_attempts": 0}, InvalidOption, "^max_attempts: .* from 1 to 1000, not 0"),
    "48 timeout 0": ({"timeout": 0}, InvalidOption, "^timeout: must be more than 0 seconds"),
    "48 timeout -1": ({"timeout": -1}, InvalidTime, "^timeout: must be from 0 to 100 years"),
    "48 timeout 10^12": ({"timeout": 10**12}, InvalidTime, "^timeout: must be from 0 to 100 years"),
    "62 concurrency 0": (
        {"max_concurrency": 0},
        InvalidOption,
        '^max_concurrency: must be a whole number from 1 to 1000000, or "none", not 0; to start none, pause',
    ),
    "62 concurrency -1": ({"max_concurrency": -1}, InvalidOption, "^max_concurrency: .*, not -1"),
    "62 concurrency 1.5": ({"max_concurrency": 1.5}, InvalidOption, "^max_concurrency: "),
    "62 concurrency true": ({"max_concurrency": True}, InvalidOption, "^max_concurrency: .*, not True"),
    "62 concurrency false": ({"max_concurrency": False}, InvalidOption, "^max_concurrency: .*, not False"),
    "62 concurrency in words": ({"max_concurrency": "8"}, InvalidOption, "^max_concurrency: .*, not '8'"),
    "62 a million and one": ({"max_concurrency": 1_000_001}, InvalidOption, "^max_concurrency: .* 1 to 1000000"),
    "62 concurrency 10^5000": ({"max_concurrency": HUGE}, InvalidOption, "^max_concurrency: .* not this int"),
    "62 rate 0": (
        {"rate_limit": "0/s"},
        InvalidOption,
        "^rate_limit: must let 1 to 1000000 jobs start in a period, not 0; to start none, pause",
    ),
    "62 rate -1": ({"rate_limit": "-1/s"}, InvalidOption, "^rate_limit: '-1/s' is not a rate such as \"10/s\""),
    "62 rate 1e9/ns": ({"rate_limit": "1e9/ns"}, InvalidOption, "^rate_limit: '1e9/ns' is not a rate"),
    "62 rate beyond counting": ({"rate_limit": "9" * 400 + "/s"}, InvalidOption, "^rate_limit: .* is not a rate"),
    "62 rate above the limit": ({"rate_limit": "1000001/s"}, InvalidOption, "^rate_limit: must let 1 to 1000000"),
    "62 a burst of none": ({"rate_limit": "1/s burst 0"}, InvalidOption, "^rate_limit: must have a burst of 1 to"),
    "62 a period of two days": ({"rate_limit": "1/2d"}, InvalidOption, "^rate_limit: must have a period of 1 second"),
    "62 a period of nothing": ({"rate_limit": "1/0s"}, InvalidOption, "^rate_limit: must have a period of 1 second"),
    "62 other digits": ({"rate_limit": "١/s"}, InvalidOption, "^rate_limit: .* is not a rate"),
    "62 rate that is a number": ({"rate_limit": 10}, InvalidOption, "^rate_limit: must be text such as"),
    "62 fair in words": ({"fair": "yes"}, InvalidOption, "^fair: must be True or False, not 'yes'"),
    "62 fair 1": ({"fair": 1}, InvalidOption, "^fair: must be True or False, not 1"),
    "62 weights as a list": ({"weights": ["acme"]}, InvalidOption, "^weights: must be a mapping of tenant to weight"),
    "62 a weight of 0": (
        {"weights": {"a": 0}},
        InvalidOption,
        r"^weights\.a: must be a number from 0.01 to 100, not 0",
    ),
    "62 a weight of 101": ({"weights": {"a": 101}}, InvalidOption, r"^weights\.a: .* from 0.01 to 100, not 101"),
    "62 a weight of NaN": ({"weights": {"a": float("nan")}}, InvalidOption, r"^weights\.a: .*, not nan"),
    "62 an infinite weight": ({"weights": {"a": float("inf")}}, InvalidOption, r"^weights\.a: .*, not inf"),
    "62 a weight of 10^5000": ({"weights": {"a": HUGE}}, InvalidOption, r"^weights\.a: .*, not this int"),
    "62 a weight in words": ({"weights": {"a": "2"}}, InvalidOption, r"^weights\.a: .*, not '2'"),
    "62 a weight that is true": ({"weights": {"a": True}}, InvalidOption, r"^weights\.a: .*, not True"),
    "62 a tenant that is no name": ({"weights": {"a b": 1}}, InvalidName, "^weights: 'a b' is not 1 to 128"),
    "62 a tenant that is a number": ({"weights": {7: 1}}, InvalidName, "^weights: must be a string, not int"),
    "62 1001 tenants": (
        {"weights": {f"t{n}": 1 for n in range(1001)}},
        InvalidOption,
        "^weights: has 1001 tenants, the limit is 1000",
    ),
    "62 ageing 0": ({"ageing": 0}, InvalidOption, '^ageing: must be more than 0 seconds; "none" turns it off'),
    "62 ageing -1": ({"ageing": -1}, InvalidTime, "^ageing: must be from 0 to 100 years"),
    "62 ageing NaN": ({"ageing": float("nan")}, InvalidTime, "^ageing: must be from 0 to 100 years, not nan"),
    "62 ageing in other words": ({"ageing": "soon"}, InvalidTime, "^ageing: 'soon' is not a duration"),
    "62 ageing true": ({"ageing": True}, InvalidTime, "^ageing: True is not a duration"),
    "an unknown setting": ({"max_concurency": 1}, InvalidOption, "^max_concurency: is not a setting of a queue"),
}

SET_WORDS: dict[str, tuple[list[str], str]] = {
    "62 concurrency 0": (["--max-concurrency", "0"], "max_concurrency: must be a whole number from 1 to 1000000"),
    "62 concurrency -1": (["--max-concurrency", "-1"], "max_concurrency: must be a whole number from 1 to 1000000"),
    "62 concurrency in words": (["--max-concurrency", "eight"], "max_concurrency: must be a whole number from 1 to"),
    "62 concurrency 10^5000": (["--max-concurrency", "9" * 5000], "max_concurrency: must be a whole number"),
    "62 rate 0": (
        ["--rate", "0/s"],
        "rate_limit: must let 1 to 1000000 jobs start in a period, not 0; to start none, pause",
    ),
    "62 rate -1": (["--rate", "-1/s"], "rate_limit: '-1/s' is not a rate such as"),
    "62 rate 1e9/ns": (["--rate", "1e9/ns"], "rate_limit: '1e9/ns' is not a rate such as"),
    "62 a weight without a tenant": (["--weight", "2"], "weights: '' is not 1 to 128 of the characters"),
    "62 a tenant without a weight": (["--weight", "acme"], "--weight: 'acme' is not a tenant and a number, such as"),
    "62 a weight of NaN": (["--weight", "acme=nan"], "weights.acme: must be a number from 0.01 to 100, not nan"),
    "62 a weight of 101": (["--weight", "acme=101"], "weights.acme: must be a number from 0.01 to 100, not 101.0"),
    "62 ageing 0": (["--ageing", "0"], 'ageing: must be more than 0 seconds; "none" turns it off'),
    "62 ageing": (["--ageing", "soon"], "--ageing: 'soon' is not a duration such as 500ms, 30s"),
    "48 timeout 0": (["--timeout", "0"], "timeout: must be more than 0 seconds"),
    "nothing": ([], "set: nothing to change; there are max_attempts, retry, timeout"),
}

KEY_WORDS: dict[str, tuple[list[str], str]] = {
    "50 empty concurrency key": (
        ["--concurrency-key", ""],
        "concurrency_key: must be 1 to 512 bytes without NUL, not 0",
    ),
    "62 a limit of 0": (
        ["--concurrency-key", "k", "--key-limit", "0"],
        "key_limit: must be a whole number from 1 to",
    ),
    "62 a limit without a key": (["--key-limit", "2"], "key_limit: has no effect without a concurrency_key"),
    "62 an order without a key": (["--key-strict"], "key_order: has no effect without a concurrency_key"),
    "62 a rate": (["--concurrency-key", "k", "--key-rate", "often"], "key_rate: 'often' is not a rate such as"),
    "62 a cost": (["--rate-cost", "0"], "rate_cost: must be a whole number from 1 to 1000000, not 0"),
    "25 a tenant": (["--tenant", "a b"], "tenant: 'a b' is not 1 to 128 of the characters"),
}

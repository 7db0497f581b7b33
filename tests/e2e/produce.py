"""A producer of the app before or after a deploy, until its gate is open: `produce.py before|after`."""

import itertools
import sys
import time
from importlib import import_module
from typing import Any

from shop import is_open  # type: ignore[import-not-found]

from windlass import Handle

PAUSE = 0.05


def produce(name: str) -> None:
    """Enqueue jobs one by one, and note each that is acknowledged."""
    module = import_module(name)
    with open(f"enqueued-{name}", "a", buffering=1) as noted:
        for number in itertools.count():
            if is_open(f"no-more-{name}"):
                return
            for handle in _some(module, number, new=name == "after"):
                noted.write(f"{handle.id}\n")
            time.sleep(PAUSE)


def _some(module: Any, number: int, *, new: bool) -> list[Handle[str]]:
    if not new:
        return [module.greet.enqueue(user=number), module.bill.enqueue(order=number)]
    greeting = {"lang": "fr"} if is_open("no-old-worker") else {}
    return [
        module.greet.enqueue(user=number, **greeting),
        module.bill.enqueue(order=number, currency="USD"),
        module.refund.enqueue(order=number),
    ]


if __name__ == "__main__":
    produce(sys.argv[1])

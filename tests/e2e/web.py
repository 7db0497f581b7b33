"""A web application: its requests enqueue jobs and wait for results."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import shop  # type: ignore[import-not-found]


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    answer = ANSWERS[environ["PATH_INFO"]](environ["QUERY_STRING"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(answer).encode()]


ANSWERS: dict[str, Callable[[str], Any]] = {
    "/add": lambda number: shop.add.enqueue(int(number), 1).result(),
    "/block": lambda gate: shop.block.enqueue(gate).result(),
    "/open": lambda gate: Path(gate).touch(),
}

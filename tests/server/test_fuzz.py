"""Every path of the OpenAPI document, called with generated requests: no answer is a failure of the server."""

from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from tests.server.test_serve import Served
from windlass.server.application import OPERATIONS

EXAMPLES = settings(
    max_examples=25,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
FUZZED = schemathesis.GenerationMode.NEGATIVE, schemathesis.GenerationMode.POSITIVE


@pytest.mark.extended
def test_no_generated_request_fails_the_server_or_has_an_undocumented_status(tmp_path: Path) -> None:
    served = Served(tmp_path, f"sqlite:///{tmp_path}/jobs.db?durability=relaxed")
    tried: Counter[str] = Counter()
    try:
        served.start("--rate", "1000000/s")
        served.log_in()
        document = served.client.get("/api/v1/openapi.json").json()
        for found in schemathesis.openapi.from_dict(document).get_all_operations():
            for mode in FUZZED:
                _fuzz(served, document, cast(Any, found).ok(), mode, tried)
        assert served.status("/readyz") == 200
    finally:
        served.end()
    assert len(tried) == len(OPERATIONS)


def _fuzz(served: Served, document: Any, operation: Any, mode: Any, tried: Counter[str]) -> None:
    @EXAMPLES
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        tried[operation.label] += 1
        if operation.path.endswith("/events"):
            case.query = {**(case.query or {}), "seconds": "0"}  # a stream would go on
        answer = case.call(base_url=str(served.client.base_url), headers=dict(served.client.headers))
        documented = document["paths"][operation.path][operation.method.lower()]["responses"]
        assert answer.status_code < 500, (operation.label, answer.text)
        assert str(answer.status_code) in documented or answer.status_code in (404, 405), (
            operation.label,
            answer.text,
        )

    check()

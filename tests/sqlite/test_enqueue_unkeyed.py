"""Jobs without keys are stored by a statement of their own, exactly as others are."""

from pathlib import Path
from typing import Any

import pytest

from tests.sqlite.test_enqueue_one import OPTIONS, row_of
from tests.support.clock import ManualClock
from tests.support.runners import rule
from tests.support.seed import new_job
from tests.support.stores import sqlite_file

PAYLOADS = ['{"s":"é😀"}', "a\0b", '{"s":"\\u0000 \\"said\\" \\\\"}', "[]", "{}", f'{{"s":"{"x" * 5000}"}}']


@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: "-".join(each) or "none")
@pytest.mark.parametrize("fair", [False, True], ids=["in order", "fair"])
async def test_a_job_without_keys_is_stored_as_beside_one_with_a_key(
    tmp_path: Path, options: dict[str, Any], fair: bool
) -> None:
    store = sqlite_file(tmp_path, ManualClock())
    await rule(store, fair=fair)
    beside, keyed, *alone = [
        new_job(**options) if n != 1 else new_job(concurrency_key="k", **options) for n in range(4)
    ]
    await store.jobs.enqueue([beside, keyed])
    await store.jobs.enqueue(alone)
    expected = await row_of(store, beside.id)
    for job in alone:
        assert await row_of(store, job.id) == expected
    await store.close()


async def test_ids_and_payloads_of_any_text_are_told_apart(tmp_path: Path) -> None:
    store = sqlite_file(tmp_path, ManualClock())
    jobs = [new_job(payload=payload) for payload in PAYLOADS]
    short = [new_job(id=id_, payload="{}") for id_ in ("short", "id")]
    for batch in (jobs, short):
        await store.jobs.enqueue(batch)
        for job in batch:
            assert job.payload in await row_of(store, job.id)
    await store.close()

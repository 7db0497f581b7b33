"""A producer that is done when every job of its list is acknowledged: started again, it says the same again."""

import sys

import msgspec
from mill import anap, app, flaky, nap, quick, talk, tally, trip  # type: ignore[import-not-found]

from windlass import EnqueueFailed, EnqueueUnknown, NewJob, group

JOBS = [
    quick.using(id="0198c000-0000-7000-8000-000000000001").job(1),
    talk.using(id="0198c000-0000-7000-8000-000000000002").job(),
    nap.using(id="0198c000-0000-7000-8000-000000000003").job(0.5),
    flaky.using(id="0198c000-0000-7000-8000-000000000004").job(1),
    anap.using(id="0198c000-0000-7000-8000-000000000005").job(0.5),
    trip.using(id="0198c000-0000-7000-8000-000000000006").job(),
    *(
        msgspec.structs.replace(job, concurrency_key="k", key_strict=True)
        for job in (
            flaky.using(id="0198c000-0000-7000-8000-000000000007").job(1),
            quick.using(id="0198c000-0000-7000-8000-000000000008").job(1),
        )
    ),
]


GROUP = group([quick.job(1), flaky.job(1), nap.job(0.2)], then=tally, id="group of all")


def enqueue_jobs(*jobs: NewJob) -> None:
    while True:
        try:
            app.enqueue_many(jobs)
        except (EnqueueFailed, EnqueueUnknown) as error:
            print(f"again, because: {error}", file=sys.stderr)
        else:
            return


for each in JOBS:
    enqueue_jobs(each)
enqueue_jobs(*GROUP.jobs)
app.close()

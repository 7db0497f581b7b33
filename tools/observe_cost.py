"""CPU time per job with metrics and traces off and on: `python -m tools.observe_cost`.

Each run is a process of its own with an embedded worker on an SQLite file in memory. The variants alternate in every
round. On a busy machine the least of the rounds says more than the median. `--bare FOLDER` adds a variant with the
windlass of that folder, such as one without any line that counts; then all others are compared with it, else with the
first. A drain times attempts alone; jobs one by one are enqueued within the time, so their enqueues count too.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

VARIANTS = ("off", "metrics", "traces", "traces, receive and settle", "OTel metrics")
LOADS = ("drain", "one by one")


async def work(variant: str, load: str, jobs: int, store: str) -> float:
    """Run the jobs; microseconds of CPU time for each."""
    from windlass import App

    app = App(store)
    observe(app, variant)

    @app.task(type="nothing")
    async def nothing(number: int) -> None: ...

    waits = load == "one by one"
    if not waits:
        for start in range(0, jobs, 1000):
            await app.aenqueue_many([nothing.job(number) for number in range(start, min(jobs, start + 1000))])
    begin = time.process_time()
    async with app.worker(concurrency=10):
        for number in range(jobs if waits else 0):
            await (await nothing.aenqueue(number)).aresult(timeout=60)
        await _until_completed(app, jobs)
        spent = time.process_time() - begin
    await app.aclose()
    return spent / jobs * 1e6


async def _until_completed(app: Any, jobs: int) -> None:
    while (await app.stats.acounts()).totals["completed"] < jobs:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


def observe(app: Any, variant: str) -> None:
    """Set up what the variant measures."""
    if variant == "metrics":
        from windlass.observe.figures import Figures
        from windlass.observe.process import want_figures

        want_figures(Figures.create_shared())
    elif variant.startswith("traces"):
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

        from windlass.contrib.otel import trace_jobs

        class Nowhere(SpanExporter):
            def export(self, _: Any) -> SpanExportResult:
                return SpanExportResult.SUCCESS

        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(Nowhere()))
        both = "receive" in variant
        trace_jobs(app, tracer_provider=provider, receive=both, settle=both)
    elif variant == "OTel metrics":
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader

        from windlass.contrib.otel import measure_jobs

        measure_jobs(app, meter_provider=MeterProvider([InMemoryMetricReader()]))


def run(variant: str, load: str, jobs: int, folder: str | None) -> float:
    """One run in a process of its own."""
    place = tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    words = [sys.executable, __file__, "--run", variant, load, str(jobs), f"sqlite:///{place}/jobs.db"]
    variables = {**os.environ, **({} if folder is None else {"PYTHONPATH": folder})}
    try:
        said = subprocess.run(words, env=variables, capture_output=True, text=True, check=True)
        return float(json.loads(said.stdout))
    finally:
        shutil.rmtree(place)


def main() -> None:
    """Measure, and print a table for each load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--bare")
    parser.add_argument("--only", nargs="*", default=VARIANTS)
    parser.add_argument("--loads", nargs="*", default=LOADS)
    given = parser.parse_args()
    variants = [*(["bare"] if given.bare else []), *given.only]
    for load in given.loads:
        jobs = given.jobs if load == "drain" else given.jobs // 10
        for each in variants:
            run(each, load, 100, given.bare if each == "bare" else None)  # modules are compiled
        rounds = [
            {each: run(each, load, jobs, given.bare if each == "bare" else None) for each in variants}
            for _ in range(given.rounds)
        ]
        print(f"\n{load}, {jobs:,} jobs, {given.rounds} rounds")
        base = variants[0]
        print(
            f"\n| variant | µs of CPU per job, least | median | to `{base}`, least | median |\n|---|---|---|---|---|"
        )
        for each in variants:
            spent, before = ([one[name] for one in rounds] for name in (each, base))
            ratio = statistics.median(one / other for one, other in zip(spent, before, strict=True)) - 1
            least = min(spent) / min(before) - 1
            print(
                f"| {each} | {min(spent):.1f} | {statistics.median(spent):.1f} | {least:+.1%} | {ratio:+.1%} |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        variant, load, jobs, store = sys.argv[2:]
        print(asyncio.run(work(variant, load, int(jobs), store)))
    else:
        main()

"""Traces and metrics of jobs by OpenTelemetry: `pip install 'windlass[otel]'`.

    app = App()
    trace_jobs(app)
    measure_jobs(app)

Spans follow the messaging conventions: `send` where a job is enqueued, `process` round every attempt, on request
`receive` and `settle` round the calls of a runner. The context travels in the job's `meta`, so also through a REST
server and along a chain. Metrics have the names of `/metrics`.
"""

from windlass.contrib.otel.instruments import measure_jobs
from windlass.contrib.otel.spans import trace_jobs

__all__ = ["measure_jobs", "trace_jobs"]

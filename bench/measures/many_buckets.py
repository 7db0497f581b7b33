"""Buckets at full size: a million jobs drained with the YugabyteDB profile on PostgreSQL, and with the plain store.

The same cases as `buckets`, but no snapshot is held: what ends is cleaned up, as on a server that is looked after.
"""

from bench.claimers import tidied
from bench.context import BenchContext
from bench.measures.buckets import Case, Found, cases, measured, rows_of
from bench.report.figures import Section


def measure(context: BenchContext) -> Section:
    """Each drain once per round, one after the other."""
    title, jobs = "Buckets at full size", context.scale.memory
    if not context.store_bench.targets.snapshots:
        return Section(name="many-buckets", title=title, rows=[], notes=["Not run: this is for PostgreSQL."])
    found: dict[Case, list[Found]] = {case: [] for case in cases(context.scale.claimers) if not case.loose}
    for _ in context.rounds("many-buckets"):
        for case, of_case in found.items():
            context.progress(f"many-buckets: {case.name}, {jobs:,} jobs")
            with context.store() as url, tidied(case.address(url)):
                of_case.append(measured(case, case.address(url), jobs))
    return Section(
        name="many-buckets",
        title=f"{title}: {jobs:,} jobs drained",
        rows=rows_of(found),
        notes=[
            "The YugabyteDB profile on one PostgreSQL: it shows what the profile costs, not what a cluster gives."
        ],
    )

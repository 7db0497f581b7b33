"""Finds the id of a job by its first or last characters, as people copy them."""

from collections.abc import Callable, Sequence

import msgspec

from windlass.core.graphs.ids import FLOW_TYPES
from windlass.core.groups.ids import is_group_id
from windlass.core.ids import LENGTH, JobId, JobRef, check_id, check_part, is_id, is_prefix, is_suffix, lowest
from windlass.core.jobs.job import Job
from windlass.core.text import cut, printable
from windlass.errors import InvalidName, JobNotFound
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter, Page

BATCH = 500
EVERY_JOB = JobFilter()
_HIGHEST = "ffffffff-ffff-ffff-ffff-ffffffffffff"
SURE_END = 8
"""This many last characters of an id are enough if not every job was searched."""


async def find_id(operator: OperatorStore, part: str, within: JobFilter = EVERY_JOB) -> JobId:
    """The id with this prefix, or else suffix, if exactly one matches of those within a filter."""
    if len(part) == LENGTH:
        return check_id(part)
    text = check_part(part)
    if is_prefix(text):
        # Ids are ordered as text: those with this prefix follow the smallest possible one.
        after = await operator.select(within, BATCH, lowest(text))
        if found := [each for each in after if each.startswith(text)]:
            return _only(found, f"begins with {text!r}")
    return await _ending(operator, text, within)


async def _ending(
    operator: OperatorStore,
    text: str,
    within: JobFilter,
    wanted_id: Callable[[JobId], bool] = lambda _: True,
    what: str = "jobs",
) -> JobId:
    wanted = msgspec.structs.replace(within, id_end=text)
    page = await operator.list(wanted, BATCH, None) if is_suffix(text) else Page[Job]((), None)
    ids = [job.id for job in page.items if wanted_id(job.id)]
    if not ids:
        bound = " (suffixes are searched among the newest jobs only)" if page.next_cursor else ""
        raise JobNotFound(f"{text}…{bound}")
    found = _only(ids, f"ends with {text!r}", what)
    if page.next_cursor and len(text) < SURE_END:
        raise InvalidName("id", f"older {what} may end with {text!r} too; give at least {SURE_END} characters")
    return found


def _only(found: Sequence[JobId], how: str, what: str = "jobs") -> JobId:
    if len(found) > 1:
        many = f"at least {BATCH}" if len(found) == BATCH else str(len(found))
        raise InvalidName("id", f"{many} {what} have an id that {how}; give more of it")
    return found[0]


async def find_flow(operator: OperatorStore, part: str) -> JobId:
    """The id of a group or graph with this prefix, or else suffix, if exactly one matches.

    The jobs that decide about callbacks have the type of groups, and ids that begin as theirs.
    """
    text, found = check_part(part), list[JobId]()
    if is_prefix(text):
        within = JobFilter(types=FLOW_TYPES, id_before=f"{text}{_HIGHEST[len(text) :]}")
        after = lowest(text)
        while page := await operator.select(within, BATCH, after):
            after = page[-1]
            found += [each for each in page if is_group_id(each)]
    if found:
        return _only(found, f"begins with {text!r}", "flows")
    return await _ending(operator, text, JobFilter(types=FLOW_TYPES), is_group_id, "flows")


def job_id(job: JobRef) -> JobId:
    """The id of a job; raises JobNotFound for text that is no id."""
    if isinstance(job, str) and not is_id(job.lower()):
        raise JobNotFound(printable(cut(job, 100)))
    return check_id(job)

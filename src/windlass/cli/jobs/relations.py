"""The relations of a job for `jobs show`: its position in a chain, and the next run of its schedule."""

from windlass.cli.output.advice import Advice
from windlass.cli.output.tables import ago
from windlass.client.app import App
from windlass.client.verbs.links import Links
from windlass.core.jobs.job import Job
from windlass.core.schedules.schedule import Schedule
from windlass.errors import ScheduleNotFound


def relations_of(home: App, job: Job, advice: Advice) -> dict[str, str]:
    """The relations, by name."""
    return {**_of_chain(home, job, advice), **_of_schedule(home, job)}


def _of_chain(home: App, job: Job, advice: Advice) -> dict[str, str]:
    if job.flow is None and not job.parents:
        return {}
    links = home.jobs.links(job.id)
    said = {"chain": f"{place_in(links)} ({advice(f'windlass jobs list --chain {job.id}')})"}
    if links.before is not None:
        said["comes after"] = _told(links.before)
    elif job.parents:
        said["comes after"] = f"{job.parents[0]}, which is not kept any more"
    if links.after is not None:
        said["comes before"] = _told(links.after)
    return said


def place_in(links: Links) -> str:
    """`link 3 of 10`, as far as that is known."""
    count = f"{len(links.jobs):,}"
    if not links.begins:
        return f"link {links.place:,} of {count} that were found"
    return f"link {links.place:,} of {count}" + ("" if links.ends else " or more")


def _told(job: Job) -> str:
    return f"{job.type} {job.status} {job.id}"


def _of_schedule(home: App, job: Job) -> dict[str, str]:
    if job.schedule is None:
        return {}
    try:
        return {"next run": next_of(home.schedules.get(job.schedule))}
    except ScheduleNotFound:
        return {"next run": "none: the schedule was removed"}


def next_of(schedule: Schedule) -> str:
    """In short form."""
    if schedule.paused:
        return "none while it is paused"
    if schedule.next_at is None:
        return "never"
    return f"{schedule.next_at:%Y-%m-%d %H:%M:%S} UTC ({ago(schedule.next_at)})"

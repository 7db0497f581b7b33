"""Jobs in every state, so that every page has something to show."""

from tests.dashboard.site import Site

PATHS = (
    *("/", "/?range=week", "/?queue=mail", "/jobs", "/jobs?status=dead", "/jobs?type=bill.*&error=declined"),
    *("/queues", "/queues/mail", "/dead", "/schedules", "/schedules/nightly", "/workers", "/types", "/flows"),
    *("/types/mail.welcome", "/actions", "/webhooks", "/audit", "/settings", "/enqueue", "/enqueue?type=order.place"),
    "/enqueue?type=elsewhere",
)


def fill(site: Site) -> dict[str, str]:
    """Jobs that completed, died, wait, and have log lines: their ids by name."""
    jobs = {
        "completed": site.enqueue(
            "mail.welcome", {"payload": {"n": 2**63 - 1, "x": 0.1}}, tags=["vip"], tenant="acme"
        ),
        "dead": site.enqueue("bill.charge", {"how": "declined"}),
        "dead-2": site.enqueue("bill.charge", {"how": "away"}),
        "logged": site.enqueue("img.resize", {"steps": 3}),
        "scheduled": site.enqueue("mail.welcome", {"payload": None}, delay="2h"),
    }
    for id_, status in zip(jobs.values(), ("completed", "dead", "dead", "completed", "scheduled"), strict=True):
        site.until_status(id_, status)
    return jobs


def fill_more(site: Site) -> dict[str, str]:
    """Also one that runs, one that is blocked, a paused queue, a changed limit and schedule, an action, an audit."""
    jobs = fill(site)
    jobs["running"] = site.enqueue("img.follow", {"count": 3})
    site.steps.release()
    site.until_status(jobs["running"], "running")
    keys = [site.enqueue("mail.welcome", {"payload": 1}, queue="held", concurrency_key="k") for _ in range(2)]
    jobs["blocked"] = keys[1]
    site.app.queues.pause("mail", "2h")
    site.app.queues.set("mail", max_concurrency=3)
    site.app.schedules.set("nightly", cron="30 4 * * *")
    jobs["changed"] = site.enqueue("mail.welcome", {"payload": {"a": [1, {"b": None}]}}, delay="1h")
    site.app.jobs.change(jobs["changed"], payload={"payload": {"a": [2]}})
    return jobs


def pages_of(jobs: dict[str, str]) -> dict[str, str]:
    """Every page by a name for its picture; also one that does not exist, and one without a match."""
    named = {"-".join(filter(None, "".join(c if c.isalnum() else " " for c in path).split())): path for path in PATHS}
    named["overview"] = named.pop("")
    return {
        **named,
        **{f"job-{name}": f"/jobs/{id_}" for name, id_ in jobs.items()},
        "copy": f"/enqueue?job={jobs['completed']}",
        "missing": "/jobs/none",
        "no-match": "/jobs?type=none",
    }

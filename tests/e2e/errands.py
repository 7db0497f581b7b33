"""A task set in a module of its own, which does not know the app."""

from windlass import TaskSet

errands = TaskSet(prefix="errand.")


@errands.task
def fetch(what: str) -> str:
    return f"{what} fetched"


@errands.task
def send_for(what: str) -> str:
    return fetch.enqueue(what).id

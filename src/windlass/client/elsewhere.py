"""Names from other job queues and what to use instead, for errors about missing attributes."""

_ENQUEUE = "use enqueue(...), or using(delay=60).enqueue(...)"
_LINK = "use job(...), or in chain(...) the task itself"
_STATUS = "use status, or job().finished"
_SETTINGS = "settings are arguments of App(...), app.queue(...) and @app.task(...)"
_SCHEDULE = "use @app.schedule(...) above a task, or app.schedule(name, task.job(...), every=300)"
_WORKER = "use `windlass worker module:app`, or `async with app.worker()`"

TASK = {
    **dict.fromkeys(("delay", "apply_async", "send", "send_with_options", "defer", "defer_async"), _ENQUEUE),
    **dict.fromkeys(("s", "si", "signature"), _LINK),
    "apply": "call the task itself, or use windlass.testing",
}
HANDLE = {
    **dict.fromkeys(("get", "wait", "join"), "use result(timeout=10)"),
    **dict.fromkeys(("ready", "successful", "failed", "done", "is_finished"), _STATUS),
    "state": "use status",
    "revoke": "use cancel()",
    "info": "use job().progress, or job().error",
    "using": "options come first: task.using(...).enqueue(...)",
}
CHAIN = dict.fromkeys(("delay", "apply_async", "run", "send"), "use enqueue()")
APP = {
    "send_task": 'use enqueue("type", {"argument": 1})',
    "AsyncResult": "use Handle(app, id), or app.jobs.get(id)",
    **dict.fromkeys(("conf", "config_from_object", "config"), _SETTINGS),
    "autodiscover_tasks": "use app.include(...) of a TaskSet",
    **dict.fromkeys(("add_periodic_task", "on_after_configure", "cron", "periodic_task"), _SCHEDULE),
    "control": "use app.jobs and app.queues",
    **dict.fromkeys(("start", "worker_main", "run_worker", "run"), _WORKER),
    **dict.fromkeys(("actor", "shared_task", "job", "function"), "use @app.task"),
}


def no_attribute(owner: object, name: str, hints: dict[str, str]) -> AttributeError:
    """The error for a name that this object does not have."""
    kind = type(owner).__name__
    hint = f"; {hints[name]}" if name in hints else ""
    return AttributeError(f"{kind!r} object has no attribute {name!r}{hint}", name=name, obj=owner)

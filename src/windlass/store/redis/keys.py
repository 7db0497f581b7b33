"""The key map: everything that Windlass keeps in Redis, by name.

All keys of a queue carry its name as hash tag, so a queue lies in one slot of a cluster and queues spread over it.
Their number is fixed, whatever jobs there are: a script can declare every key that it touches.
"""

import msgspec

DEFAULT_PREFIX = "windlass"
OFFICE = "*"
"""The tag of what belongs to no queue: no queue can be called so."""

QUEUE_KEYS: dict[str, str] = {
    "queue": "hash: the settings, what follows from them, and which store this queue belongs to",
    "counts": "hash: status letter → how many jobs",
    "jobs": "hash: id → the packed record of a job, live or finished (record.py)",
    "more": "hash: id → reason, error and ended attempts, of jobs that have any",
    "notes": "hash: id → progress and log lines, of jobs that have any",
    "ids": "zset, by member: every id, for lists",
    "types": "hash: the name of a type → its number in this queue",
    "ready": "zset, by member: type, urgency, rank, id of pending jobs",
    "pend": "hash: number of a type → how many of it are pending",
    "lanes": "zset, by member: urgency, tenant, type, rank, id of pending jobs of a fair queue",
    "turns": "hash: whose turn it is in a fair queue",
    "due": "zset: moment → id of scheduled and failed jobs",
    "expiring": "zset: moment → id of waiting jobs that expire",
    "held": "zset, by member: runner, claim, and the ids that were claimed so",
    "left": "hash: runner and claim → how many of them run still",
    "cancels": "set: ids of running jobs that somebody wants stopped",
    "leases": "hash: runner → until when it may claim here without asking the office",
    "gone": "zset: moment until which it is remembered → runner that has ended here for good",
    "ended": "zset: moment at which a finished job may go → id",
    "rare": "zset, by member: status letter, id of failed, dead and cancelled jobs",
    "failing": "zset: moment → id of failed and dead jobs",
    "keys": "hash: digest of an idempotency key → the job that has it",
    "windows": "zset: moment → digest of a key whose job has ended and whose window has not",
    "tombs": "hash: id of a dropped job → its last attempt and how that ended",
    "buried": "zset: moment until which it is remembered → id of a dropped job",
    "line": "zset, by member: digest of a concurrency key, place, id of those in line for it",
    "slots": "zset, by member: digest of a concurrency key, slot, id of those who have one",
    "stalled": "set: digests of concurrency keys in whose lines more may go on than one call moves",
    "parked": "zset, by member: type, rank, id of jobs whose type no worker knows",
    "aside": "zset, by member: digest of a concurrency key, place, id of those who wait for its rate",
    "gates": "hash: digest of a concurrency key, or nothing for the queue itself → its bucket of tokens",
    "children": "zset, by member: parent, id",
    "heirs": "zset, by member: w or f (it was told that the parent ended badly), parent, child, the child's queue if "
    "it is another",
    "wake": "hash: job that others wait for → how it is now, and its result, as long as not all of them were told",
    "outbox": "hash: child, parent, queue of the child → since when, how the parent is, its result: to be told there",
    "asking": "zset: moment → id of a child that has not asked all of its parents how they are, or when one that "
    "waits asks again",
    "stage": "hash: batch and number → a portion of a large hand-in that is not committed, or not unfolded",
    "batches": "zset: moment → batch that is staged; hash fields of `stage` tell whether it is committed",
    "leaving": "hash: id → record and target of a job that moves to another queue",
    "ticks": "hash: schedule → number of its last plan that came here, and which of its ticks got a job",
}

OFFICE_KEYS: dict[str, str] = {
    "meta": "hash: which store this is, and the version of its key map",
    "queues": "set: the names of queues",
    "parking": "set: the names of queues in which jobs were ever parked",
    "leases": "hash: runner → when its lease ends, its length, its worker; nobody → when anybody was last heard of",
    "lapses": "zset: moment → runner whose lease ends then",
    "berths": "zset, by member: worker, runner, queue in which it may hold jobs",
    "gone": "zset: moment until which it is remembered → runner that has ended or was rescued",
    "wrecks": "hash: runner that is gone, as long as not all that it held is put back → its worker",
    "workers": "hash: worker → since when it is there, and what it says of itself",
    "beats": "zset: moment → worker that beat then",
    "leader": "hash: the coordinator's office",
    "schedules": "hash: name of a schedule → what the code declares of it, what an operator changed",
    "standings": "hash: name of a schedule → whether it is paused, its last and its next tick, counts (schedules.py)",
    "ticking": "zset: moment of the next tick → name of a schedule that is not paused",
    "plans": "hash: name of a schedule whose ticks have come → number and plan of what is done about them just now",
    "removed": "zset: moment → name of a schedule that was removed then, and that queues may still know",
    "meters": "hash: slot, queue and type → meter",
    "slots": "zset, by member: slot, queue and type of which there is a meter",
    "samples": "hash: kind, step, slot, queue and type → sample, or how many jobs there were",
    "steps": "zset, by member: kind, step, slot, queue and type of which there is a sample",
}


class KeyMap(msgspec.Struct, frozen=True):
    """The names of the keys under one prefix."""

    prefix: str = DEFAULT_PREFIX

    def of_queue(self, queue: str, names: tuple[str, ...]) -> list[str]:
        """The keys of a queue, in the order in which a script declares them."""
        return [f"{self.prefix}:{{{queue}}}:{name}" for name in names]

    def of_office(self, names: tuple[str, ...]) -> list[str]:
        """The keys of what belongs to no queue."""
        return [f"{self.prefix}:{{{OFFICE}}}:{name}" for name in names]

    def channel(self, queue: str) -> str:
        """Where it is said that a queue has work."""
        return f"{self.prefix}:{{{queue}}}:hints"

    def ends(self, queue: str) -> str:
        """Where those listen who wait for any job of a queue; nothing is said there."""
        return f"{self.prefix}:{{{queue}}}:ends"

    def end(self, queue: str, job: str) -> str:
        """Where it is said that a job has ended."""
        return f"{self.ends(queue)}:{job}"

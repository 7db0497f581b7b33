"""The key map: everything that Windlass keeps in Redis, by name.

All keys of a queue carry its name as hash tag, so a queue is in one hash slot of a cluster and queues spread over it.
Their number is fixed, however many jobs there are: a script declares every key that it touches.
"""

import msgspec

DEFAULT_PREFIX = "windlass"
GLOBAL = "*"
"""The hash tag of what belongs to no queue: not a valid name of a queue."""

QUEUE_KEYS: dict[str, str] = {
    "queue": "hash: the queue's settings, values derived from them, and the id of its store",
    "counts": "hash: status letter → number of jobs",
    "jobs": "hash: id → the packed record of a job, live or finished (records/record.py)",
    "details": "hash: id → reason, error and ended attempts, of jobs that have any",
    "notes": "hash: id → progress and log lines, of jobs that have any",
    "ids": "zset, by member: every id, for lists",
    "types": "hash: name of a type → its number in this queue",
    "ready": "zset, by member: type, sort_priority, rank, id of pending jobs",
    "pending_counts": "hash: number of a type → number of its pending jobs",
    "tenant_queues": "zset, by member: sort_priority, tenant, type, rank, id of pending jobs of a fair queue",
    "fairness": "hash: sort_priority → virtual times of tenants of a fair queue",
    "due": "zset: moment → id of scheduled, throttled and failed jobs",
    "expiring": "zset: moment → id of waiting jobs that expire",
    "held": "zset, by member: runner, claim, ids of the jobs of that claim",
    "claim_counts": "hash: runner and claim → number of its jobs that are still running",
    "cancels": "set: ids of running jobs with a cancel request",
    "leases": "hash: runner → until when it may claim here without another look at the global lease",
    "ended_runners": "zset: moment until which it is remembered → runner that ended and may not claim here again",
    "drop_times": "zset: moment at which retention is over → id of a finished job",
    "by_status": "zset, by member: status letter, id of failed, dead and cancelled jobs",
    "failures": "zset: moment → id of failed and dead jobs",
    "idempotency_keys": "hash: digest of an idempotency key → the job that has it",
    "key_windows": "zset: moment → digest of an idempotency key whose job finished and whose window is open",
    "tombstones": "hash: id of a dropped job → its last attempt and outcome",
    "tombstone_times": "zset: moment until which it is kept → id with a tombstone",
    "waiting_for_key": "zset, by member: concurrency digest, sort_priority, rank, id of jobs that wait for it",
    "key_slots": "zset, by member: concurrency digest, key slot, id of the job that has it",
    "stalled_keys": "set: digests of concurrency keys with more free key slots than one call assigns",
    "parked": "zset, by member: type, rank, id of jobs whose type no live worker knows",
    "throttled": "zset, by member: concurrency digest, sort_priority, rank, id of jobs that wait for its rate",
    "token_buckets": "hash: digest of a concurrency key, or nothing for the queue itself → its token bucket",
    "children": "zset, by member: parent, id of each of its children in this queue",
    "dependents": "zset, by member: w (waiting) or f (notified that the parent failed), parent, child, the child's "
    "queue if it is another one; not the only dependent of a parent that has it in its record",
    "parent_changes": "hash: parent → its state and result, until all of its dependents are notified",
    "outbox": "hash: child, parent, queue of the child → since when, state and result of the parent: mail for that "
    "queue",
    "parent_checks": "zset: moment → child that must ask for the states of its parents then",
    "staged": "hash: batch and number → a portion of a large enqueue batch that is not stored yet",
    "batches": "zset: moment → batch that counts as abandoned then; `staged` says whether it is committed",
    "moving": "hash: id → record and target of a job that moves to another queue",
    "fired_ticks": "hash: schedule → number of the last plan that came here, and which of its ticks have a job",
}

GLOBAL_KEYS: dict[str, str] = {
    "meta": "hash: the id of the store, the version of its key map, and the oldest version that works with it",
    "queues": "set: the names of queues",
    "parked_queues": "set: the names of queues in which jobs were ever parked",
    "leases": "hash: runner → end and length of its lease, its worker; empty field → when a lease was last renewed",
    "lease_ends": "zset: moment → runner whose lease ends then",
    "registrations": "zset, by member: worker, runner, queue in which the runner may hold jobs",
    "ended_runners": "zset: moment until which it is remembered → runner that ended or was rescued",
    "dead_runners": "hash: dead runner, until all of its jobs are put back → its worker",
    "workers": "hash: worker → when it started, and its own report",
    "heartbeats": "zset: moment of its last heartbeat → worker",
    "leadership": "hash: the coordinator, its term, and when that ends",
    "schedules": "hash: name of a schedule → settings that the code declares, and the operator's changes",
    "schedule_states": "hash: name of a schedule → whether it is paused, last and next tick, counts "
    "(schedules/read_schedules.py)",
    "next_ticks": "zset: moment of the next tick → name of a schedule that is not paused",
    "plans": "hash: name of a schedule → number and content of the plan for its due ticks",
    "removed_schedules": "zset: moment → name of a removed schedule that queues may still remember",
    "meters": "hash: interval start, queue and type → meter",
    "meter_index": "zset, by member: interval start, queue and type of each meter",
    "samples": "hash: kind, step, interval start, queue and type → sample or number of jobs",
    "sample_index": "zset, by member: kind, step, interval start, queue and type of each sample",
    "documents": "hash: kind and id of a document → its version, creation time, end, and data",
    "document_index": "zset, by member: kind and id of each document",
    "document_ends": "zset: moment → kind and id of a document that expires then",
}


class KeyMap(msgspec.Struct, frozen=True):
    """The names of the keys under one prefix."""

    prefix: str = DEFAULT_PREFIX

    def of_queue(self, queue: str, names: tuple[str, ...]) -> list[str]:
        """The keys of a queue, in the order in which a script declares them."""
        return [f"{self.prefix}:{{{queue}}}:{name}" for name in names]

    def global_keys(self, names: tuple[str, ...]) -> list[str]:
        """Keys that belong to no queue."""
        return [f"{self.prefix}:{{{GLOBAL}}}:{name}" for name in names]

    def channel(self, queue: str) -> str:
        """The channel for hints that a queue has work."""
        return f"{self.prefix}:{{{queue}}}:hints"

    def queue_of(self, channel: str) -> str:
        """The queue of a channel."""
        return channel[len(self.prefix) + 2 :].partition("}:")[0]

    def ends(self, queue: str) -> str:
        """The channel that is subscribed to while any job of a queue is waited for; nothing is published on it."""
        return f"{self.prefix}:{{{queue}}}:ends"

    def end(self, queue: str, job: str) -> str:
        """The channel on which the end of a job is published."""
        return f"{self.ends(queue)}:{job}"

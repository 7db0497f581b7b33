"""How the limits of its queue and the rate of its key delay a waiting job."""

from windlass.core.flow.rate import price, wait_for
from windlass.core.moments import to_datetime
from windlass.core.status import Status
from windlass.core.why.facts import Count, WhyFacts
from windlass.core.why.reason import Reason, at, listed, many


def at_concurrency_limit(facts: WhyFacts) -> list[Reason]:
    """The reason if the queue runs as many jobs as its limit allows."""
    limit, running = facts.queue.rules.max_concurrency, facts.position.running
    if limit is None or running.jobs < limit:
        return []
    longest = listed(facts.runners, facts.now, Count(len(facts.runners)))
    name = facts.queue.name
    text = f"Queue {name} runs {many(running, 'job', 'jobs')}, and its limit is {limit:,} at once"
    return [
        Reason(
            code="concurrency_limit",
            text=f"{text}. Longest: {longest}." if longest else f"{text}.",
            do=f"to let more run: windlass queues set {name} --max-concurrency N",
            jobs=tuple(each.id for each in facts.runners),
            count=running.jobs,
            at_least=running.at_least,
        )
    ]


def out_of_tokens(facts: WhyFacts) -> list[Reason]:
    """The reasons for rates without tokens for the job. A job that is not due costs tokens later."""
    job = facts.job
    if job.status in (Status.SCHEDULED, Status.FAILED):
        return []
    found = []
    for whose, rate, token_bucket in facts.token_buckets:
        wait = wait_for(token_bucket, rate, price(job.rate_cost, rate))
        if wait == 0:
            continue
        until = facts.now + wait
        come = f"tokens for this job come at {at(until, facts.now)}"
        if whose == "queue":
            text = f"Queue {facts.queue.name} has used up its rate of {rate}; {come}."
            do = f"to let more start: windlass queues set {facts.queue.name} --rate RATE"
            found.append(Reason(code="rate_limit", text=text, do=do, until=to_datetime(until)))
        else:
            text = f"Its concurrency key has used up its rate of {rate}; {come}."
            found.append(Reason(code="key_rate", text=text, until=to_datetime(until)))
    return found

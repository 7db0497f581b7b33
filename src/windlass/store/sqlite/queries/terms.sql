-- What claims must obey: a row for each queue that is not plain. Most stores have few queues and none of these.
SELECT name, paused AND (paused_until IS NULL OR paused_until > :now), max_concurrency, rate_limit, fair, rated,
    CASE WHEN fair THEN declared END, CASE WHEN fair THEN changed END
FROM windlass_queues WHERE ruled OR rated OR paused

-- Cut locked quotas down to what their runners run; returns how many slots that frees.
WITH used AS MATERIALIZED (
    SELECT holder.runner, (
        SELECT count(*) FROM windlass.jobs
        WHERE worker = holder.runner AND status = 'running' AND queue || '' = :queue::text
    ) AS jobs
    FROM unnest(:runners::text[]) AS holder (runner)
), trimmed AS (
    UPDATE windlass.quotas AS quota SET slots = used.jobs FROM used
    WHERE quota.queue = :queue::text AND quota.runner = used.runner AND quota.slots > used.jobs
)
SELECT coalesce(sum(quota.slots - used.jobs), 0)::bigint
FROM used JOIN windlass.quotas AS quota ON quota.queue = :queue::text AND quota.runner = used.runner
WHERE quota.slots > used.jobs

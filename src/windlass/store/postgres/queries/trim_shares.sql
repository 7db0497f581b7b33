-- Shares that were locked before are cut down to what their runners really run: how many slots that frees.
WITH used AS MATERIALIZED (
    SELECT holder.runner, (
        SELECT count(*) FROM windlass.jobs
        WHERE worker = holder.runner AND status = 'running' AND queue || '' = :queue::text
    ) AS jobs
    FROM unnest(:runners::text[]) AS holder (runner)
), trimmed AS (
    UPDATE windlass.shares AS share SET slots = used.jobs FROM used
    WHERE share.queue = :queue::text AND share.runner = used.runner AND share.slots > used.jobs
)
SELECT coalesce(sum(share.slots - used.jobs), 0)::bigint
FROM used JOIN windlass.shares AS share ON share.queue = :queue::text AND share.runner = used.runner
WHERE share.slots > used.jobs

-- Whether a job of one of these types is parked.
SELECT EXISTS (
    SELECT 1 FROM unnest(:types::text[]) AS known (type) CROSS JOIN LATERAL (
        SELECT 1 FROM windlass.jobs
        WHERE status || '' = 'blocked' AND reason = 'no worker for type' AND type = known.type LIMIT 1
    ) AS parked
)

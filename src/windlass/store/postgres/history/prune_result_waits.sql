-- Delete expired waits.
DELETE FROM windlass.result_waits WHERE (job, channel) IN (
    SELECT job, channel FROM windlass.result_waits WHERE until <= :now ORDER BY until LIMIT :limit FOR UPDATE SKIP LOCKED
)

-- What those have left who waited and are gone.
DELETE FROM windlass.awaited WHERE (job, channel) IN (
    SELECT job, channel FROM windlass.awaited WHERE until <= :now ORDER BY until LIMIT :limit FOR UPDATE SKIP LOCKED
)

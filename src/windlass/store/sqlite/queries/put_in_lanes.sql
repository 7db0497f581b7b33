-- The jobs of a queue in a range of ids wait in the lanes of their tenants from now on.
UPDATE windlass_jobs SET lane = coalesce(tenant, '')
WHERE id > :after AND (:until IS NULL OR id <= :until) AND queue = :queue AND lane IS NULL

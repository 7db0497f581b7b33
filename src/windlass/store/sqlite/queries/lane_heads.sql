-- The ids of the next jobs of tenants at one priority of a fair queue where no start costs anything: of each up to :most, in
-- the order of their ranks, [[lane, [id, …]], …]. One seek for each tenant; as one row, like the answer of a claim.
SELECT '[' || group_concat(own) || ']' FROM (
    SELECT json_array(lanes.value, json((
        SELECT '[' || group_concat(id) || ']' FROM (
            SELECT '"' || id || '"' AS id FROM windlass_jobs INDEXED BY windlass_jobs_lane
            WHERE queue = :queue AND urgency = :urgency AND lane = lanes.value AND status = 'pending'
            AND type IN (SELECT value FROM json_each(:types)) AND (expires_at IS NULL OR expires_at > :now)
            ORDER BY rank, windlass_jobs.id LIMIT :most
        )
    ))) AS own FROM json_each(:lanes) AS lanes
)

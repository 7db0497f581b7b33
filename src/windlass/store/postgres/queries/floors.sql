-- Every floor, and who may still be writing: transactions from `ahead` on have not begun, those before `behind` are over.
SELECT queue, urgency, rank, returns, :now AS now,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS ahead,
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS behind
FROM windlass.floors

-- Grant tokens to a runner; its earlier grant is spent or forgotten.
INSERT INTO windlass.quotas (queue, runner, tokens, until)
VALUES (:queue::text, :runner::text, :tokens::integer, :until::bigint)
ON CONFLICT (queue, runner) DO UPDATE SET tokens = excluded.tokens, until = excluded.until

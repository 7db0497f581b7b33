-- Tokens for the claims of one runner in the next moments; what it had before is spent or forgotten.
INSERT INTO windlass.shares (queue, runner, tokens, until)
VALUES (:queue::text, :runner::text, :tokens::integer, :until::bigint)
ON CONFLICT (queue, runner) DO UPDATE SET tokens = excluded.tokens, until = excluded.until

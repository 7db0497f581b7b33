-- Documents in descending order of their ids.
SELECT id, data, version, created_at FROM windlass.documents
WHERE kind = :kind::text AND coalesce(id < :before::text, true) AND coalesce(expires_at > :now, true)
ORDER BY id DESC LIMIT :limit::bigint

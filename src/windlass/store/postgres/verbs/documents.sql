-- Documents by id.
SELECT id, data, version, created_at FROM windlass.documents
WHERE kind = :kind::text AND id = ANY (:ids::text[]) AND coalesce(expires_at > :now, true)

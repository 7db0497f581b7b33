-- Replace a document that still has a version.
UPDATE windlass.documents SET data = :data::text, version = version + 1
WHERE kind = :kind::text AND id = :id::text AND version = :version::bigint AND coalesce(expires_at > :now, true)

-- Add a document. An expired one counts as absent.
INSERT INTO windlass.documents AS document (kind, id, data, version, created_at, expires_at)
VALUES (:kind::text, :id::text, :data::text, 1, :now, :now + :keep::bigint)
ON CONFLICT (kind, id) DO UPDATE SET
    data = excluded.data, version = 1, created_at = excluded.created_at, expires_at = excluded.expires_at
WHERE document.expires_at <= :now

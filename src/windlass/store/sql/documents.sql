-- name: add_document
-- An expired document counts as absent.
INSERT INTO windlass.documents AS document (kind, id, data, version, created_at, expires_at)
VALUES (:kind::text, :id::text, :data::text, 1, :now, :now + :keep::bigint)
ON CONFLICT (kind, id) DO UPDATE SET
    data = excluded.data, version = 1, created_at = excluded.created_at, expires_at = excluded.expires_at
WHERE document.expires_at <= :now

-- name: replace_document
UPDATE windlass.documents
SET data = :data::text, version = version + 1, expires_at = coalesce(:now + :keep::bigint, expires_at)
WHERE kind = :kind::text AND id = :id::text AND version = :version::bigint AND coalesce(expires_at > :now, true)

-- name: documents
SELECT id, data, version, created_at FROM windlass.documents
WHERE kind = :kind::text AND id = ANY(:ids::text[]) AND coalesce(expires_at > :now, true)

-- name: newest_documents
SELECT id, data, version, created_at FROM windlass.documents
WHERE kind = :kind::text AND coalesce(id < :before::text, true) AND coalesce(expires_at > :now, true)
ORDER BY id DESC LIMIT :limit::bigint

-- name: delete_documents
DELETE FROM windlass.documents
WHERE kind = :kind::text AND id = ANY(:ids::text[]) AND coalesce(expires_at > :now, true)

-- name: trim_documents
DELETE FROM windlass.documents WHERE kind = :kind::text AND id IN (
    SELECT id FROM windlass.documents WHERE kind = :kind::text AND id < (
        SELECT id FROM windlass.documents WHERE kind = :kind::text ORDER BY id DESC LIMIT 1 OFFSET :most::bigint - 1
    ) ORDER BY id LIMIT :limit::bigint
)

-- name: prune_documents
DELETE FROM windlass.documents WHERE (kind, id) IN (
    SELECT kind, id FROM windlass.documents WHERE expires_at <= :now LIMIT :limit::bigint
)

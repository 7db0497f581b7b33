-- name: add_document
-- An expired one counts as absent.
INSERT INTO windlass_documents (kind, id, data, version, created_at, expires_at)
VALUES (:kind, :id, :data, 1, :now, :now + :keep)
ON CONFLICT (kind, id) DO UPDATE SET
    data = excluded.data, version = 1, created_at = excluded.created_at, expires_at = excluded.expires_at
WHERE windlass_documents.expires_at <= :now

-- name: replace_document
UPDATE windlass_documents SET data = :data, version = version + 1
WHERE kind = :kind AND id = :id AND version = :version AND coalesce(expires_at > :now, TRUE)

-- name: documents
SELECT id, data, version, created_at FROM windlass_documents
WHERE kind = :kind AND id IN (SELECT value FROM json_each(:ids)) AND coalesce(expires_at > :now, TRUE)

-- name: newest_documents
SELECT id, data, version, created_at FROM windlass_documents
WHERE kind = :kind AND coalesce(id < :before, TRUE) AND coalesce(expires_at > :now, TRUE)
ORDER BY id DESC LIMIT :limit

-- name: delete_documents
DELETE FROM windlass_documents
WHERE kind = :kind AND id IN (SELECT value FROM json_each(:ids)) AND coalesce(expires_at > :now, TRUE)

-- name: trim_documents
DELETE FROM windlass_documents WHERE kind = :kind AND id IN (
    SELECT id FROM windlass_documents WHERE kind = :kind AND id < (
        SELECT id FROM windlass_documents WHERE kind = :kind ORDER BY id DESC LIMIT 1 OFFSET :most - 1
    ) ORDER BY id LIMIT :limit
)

-- name: prune_documents
DELETE FROM windlass_documents WHERE rowid IN (
    SELECT rowid FROM windlass_documents WHERE expires_at <= :now LIMIT :limit
)

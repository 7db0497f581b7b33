-- Drop some expired documents.
DELETE FROM windlass.documents WHERE (kind, id) IN (
    SELECT kind, id FROM windlass.documents WHERE expires_at <= :now LIMIT :limit::bigint FOR UPDATE SKIP LOCKED
)

-- Delete documents with the lowest ids beyond a number.
DELETE FROM windlass.documents WHERE kind = :kind::text AND id IN (
    SELECT id FROM windlass.documents WHERE kind = :kind::text AND id < (
        SELECT id FROM windlass.documents WHERE kind = :kind::text ORDER BY id DESC LIMIT 1 OFFSET :most::bigint - 1
    ) ORDER BY id LIMIT :limit::bigint
)

-- Delete documents by id.
DELETE FROM windlass.documents
WHERE kind = :kind::text AND id = ANY (:ids::text[]) AND coalesce(expires_at > :now, true)

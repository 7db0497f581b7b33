-- The clock was set back: a hold from before would last for so much longer. Whoever has the office takes it again.
UPDATE windlass.office SET expires_at = :moment::bigint WHERE expires_at > :moment::bigint

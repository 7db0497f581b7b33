-- The clock was set back: leadership would last longer. The leader acquires it again.
UPDATE windlass.leadership SET expires_at = :moment::bigint WHERE expires_at > :moment::bigint

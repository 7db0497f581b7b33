-- Who coordinates.
SELECT holder, term, boot, expires_at FROM windlass_office

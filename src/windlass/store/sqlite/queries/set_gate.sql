-- What is left in a bucket, and when it is full again: from then on the row says nothing.
INSERT OR REPLACE INTO windlass_gates (queue, key, credit, period, at, full_at) VALUES (?, ?, ?, ?, ?, ?)

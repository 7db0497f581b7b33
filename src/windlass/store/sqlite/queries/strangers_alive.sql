-- Workers that beat after this machine had started, and yet under another boot: they are on another machine.
SELECT id, info, beat_at FROM windlass_workers WHERE boot <> :boot AND beat_at > :started ORDER BY beat_at DESC

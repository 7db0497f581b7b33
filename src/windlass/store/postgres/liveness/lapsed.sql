-- Whether a lease has lapsed, whether leases may be in their grace, for how long no process has reached the store,
-- and the time. Without a lock.
SELECT EXISTS (SELECT FROM windlass.leases WHERE expires_at <= clock.now), coalesce(clock.now <= activity.graced_until, false),
    coalesce(clock.now - greatest(activity.at, activity.seen_at), 0), clock.now
FROM (SELECT :now AS now) AS clock LEFT JOIN windlass.lease_activity AS activity ON activity.one = 1

-- recount: recompute the counters of this queue from its indexes, after those were repaired, and publish a hint.
--! effect: writes
--! uses: record, hint
local function rare(letter)
  return redis.call('ZLEXCOUNT', K.by_status, '[' .. string.char(letter), '(' .. string.char(letter + 1))
end

local counted = {[PENDING] = redis.call('ZCARD', K.ready), [WAITING_FOR_KEY] = redis.call('ZCARD', K.waiting_for_key),
  [PARKED] = redis.call('ZCARD', K.parked), [THROTTLED] = redis.call('ZCARD', K.throttled), [FAILED] = rare(FAILED),
  [DEAD] = rare(DEAD), [CANCELLED] = rare(CANCELLED), [RUNNING] = 0}
counted[SCHEDULED] = redis.call('ZCARD', K.due) - counted[FAILED] - counted[THROTTLED]
counted[COMPLETED] = redis.call('ZCARD', K.drop_times) - counted[DEAD] - counted[CANCELLED]
for _, jobs in ipairs(redis.call('HVALS', K.claim_counts)) do counted[RUNNING] = counted[RUNNING] + tonumber(jobs) end
local rest = redis.call('HLEN', K.jobs)
for _, jobs in pairs(counted) do rest = rest - jobs end
counted[BLOCKED] = rest
for letter, jobs in pairs(counted) do redis.call('HSET', K.counts, string.char(letter), jobs) end

for _, number in ipairs(redis.call('HVALS', K.types)) do
  local head = struct.pack('>I4', number)
  redis.call('HSET', K.pending_counts, number, redis.call('ZLEXCOUNT', K.ready, '[' .. head, '(' .. head .. '\255\255\255'))
end
publish_hint()
return 1

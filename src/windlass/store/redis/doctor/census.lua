-- census: counts of waiting jobs. Reply: {type, jobs} of pending and of parked jobs, the newest stored time (0:
-- none), and the number of dead jobs.
--! effect: reads
--! uses: record
local pending, parked = {}, {}
local types = redis.call('HGETALL', K.types)
for i = 1, #types, 2 do
  local number = tonumber(types[i + 1])
  local jobs = tonumber(redis.call('HGET', K.pending_counts, number) or 0)
  if jobs > 0 then pending[#pending + 1] = {types[i], jobs} end
  local head, next_head = struct.pack('>I4', number), struct.pack('>I4', number + 1)
  local parked_jobs = redis.call('ZLEXCOUNT', K.parked, '[' .. head, '(' .. next_head)
  if parked_jobs > 0 then parked[#parked + 1] = {types[i], parked_jobs} end
end

-- Ids grow with time, so the last hundred are enough.
local newest = 0
for _, id in ipairs(redis.call('ZREVRANGE', K.ids, 0, 99)) do
  local value = redis.call('HGET', K.jobs, id)
  if value then newest = math.max(newest, read_record(value).updated) end
end

return {pending, parked, newest, tonumber(redis.call('HGET', K.counts, string.char(DEAD)) or 0)}

-- tend_gates: buckets that are full again are as good as none, and go. Those from a time that has not come are from before
-- the clock was set back: they keep what they hold, and are filled from now on; who waits for them comes by so much earlier.
-- The request is a cursor of HSCAN, 0 to begin with. The answer is the next one, 0 at the end.
-- uses: call, record, index, gate
-- keys: queue jobs gates aside due
local SET_BACK = 10000000  -- as core/rate.py has it: less is waited for
local BUCKETS, MOST_TURNED_BACK = 200, 250
local problem = strange()
if problem then return problem end
local now = the_time()

-- Whether all who wait for this key were told. Who was is known by its moment, so it is not told again.
local function turn_back_aside(key, at)
  local turned = 0
  for _, member in ipairs(redis.call('ZRANGEBYLEX', K.aside, '[' .. key, '(' .. key .. '\255\255\255')) do
    local id = string.sub(member, -36)
    local r = read_record(redis.call('HGET', K.jobs, id))
    if r.run_at >= at then
      turned = turned + 1
      if turned > MOST_TURNED_BACK then return false end
      r.run_at, r.version = r.run_at + now - at, r.version + 1
      redis.call('HSET', K.jobs, id, write_record(r))
      redis.call('ZADD', K.due, r.run_at, id)
    end
  end
  return true
end

local cursor, pairs_ = unpack(redis.call('HSCAN', K.gates, request, 'COUNT', BUCKETS))
for i = 1, #pairs_, 2 do
  local key, bucket = pairs_[i], read_gate(pairs_[i + 1])
  local ahead = bucket.at - now
  if ahead > SET_BACK then
    if key == OWN or turn_back_aside(key, bucket.at) then
      bucket.at = now
      set_gate(key, bucket, bucket.full_at - ahead)
    end
  elseif bucket.full_at <= now then
    redis.call('HDEL', K.gates, key)
  end
end
return cursor

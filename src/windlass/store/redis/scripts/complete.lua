-- complete: attempts that ended well, and have neither a key nor anything else that is unusual: into history. The request
-- is lists of ids, attempts, moments from claim to start (-1: it never started) and results (empty: none). The answer has
-- a number for each: 1 if it is done; 0 if somebody must look at it.
-- uses: call, record, index, keep
-- keys: queue counts jobs ended held left
local problem = strange()
if problem then return problem end
local now = the_time()
local ids, attempts, starts, results = unpack(request, 1, 4)
local keep = keep_of(COMPLETED)
local values = redis.call('HMGET', K.jobs, unpack(ids))
local records, ended, answer, claims, done = {}, {}, {}, {}, 0
local unusual = KEYED + LINED + CANCELLING + STRICT
local seen = {}
for i, id in ipairs(ids) do
  local value = values[i]
  answer[i] = 0
  if value and not seen[id] then  -- one that comes twice is done once
    local letter, version, attempt, claim, updated, claimed, started, length = struct.unpack(HEAD_A, value)
    local flags = struct.unpack('>I2', value, A_SIZE + length + 1)
    if letter == RUNNING and attempt == attempts[i] and bit.band(flags, unusual) == 0 and keep > 0 then
      done = done + 1
      answer[i], seen[id] = 1, true
      if starts[i] >= 0 then started = claimed + starts[i] end
      records[2 * done - 1] = id
      records[2 * done] = struct.pack(HEAD_A, COMPLETED, version + 1, attempt, claim, now, claimed, started, length)
        .. string.sub(value, A_SIZE + 1) .. results[i]
      ended[2 * done - 1], ended[2 * done] = now + keep, id
      local field = string.sub(value, A_SIZE + 1, A_SIZE + length) .. ':' .. string.format('%.0f', claim)
      claims[field] = (claims[field] or 0) + 1
    end
  end
end
if done == 0 then return answer end
redis.call('HSET', K.jobs, unpack(records))
redis.call('ZADD', K.ended, unpack(ended))
bump(RUNNING, -done)
bump(COMPLETED, done)
for field, jobs in pairs(claims) do
  if redis.call('HINCRBY', K.left, field, -jobs) <= 0 then
    redis.call('HDEL', K.left, field)
    redis.call('HDEL', K.held, field)
  end
end
return answer

-- reserve: jobs are about to come here from other queues: their idempotency keys are theirs for a while, as if in a
-- window, so that nobody takes them meanwhile and a mover who dies leaves nothing. The request is {id, digest} of each
-- and for how long; 0 gives up what was reserved so. The answer for each: nothing, or the id of another who has it.
-- uses: call, hold
-- keys: queue jobs keys windows
local problem = strange()
if problem then return problem end
local now, length, answer = the_time(), request[2], {}

local function give_up(id, digest)
  local mine = redis.call('HGET', K.keys, digest) == id and redis.call('HEXISTS', K.jobs, id) == 0
  if mine and redis.call('ZREM', K.windows, digest) == 1 then redis.call('HDEL', K.keys, digest) end
  return nil
end

local function reserve(id, digest)
  local holder = take_key(id, digest, now)
  if not holder then redis.call('ZADD', K.windows, now + length, digest) end
  return holder
end

for i, entry in ipairs(request[1]) do
  local act = length == 0 and give_up or reserve
  answer[i] = act(entry[1], entry[2]) or ''
end
return answer

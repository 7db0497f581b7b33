-- desert: these runners are gone, and can claim nothing here from now on. The request is runners, how many jobs at most.
-- The answer is the store's time, and id, record and more of jobs that they hold still: whoever has put these back asks
-- again until there are none.
-- uses: call, record
-- keys: queue jobs more leases gone held left
local problem = strange()
if problem then return problem end
local REMEMBERED = 86400000000
local now = the_time()
local runners, most = unpack(request, 1, 2)
local gone, answer = {}, {now}

for _, runner in ipairs(runners) do
  gone[runner] = true
  redis.call('HDEL', K.leases, runner)
  redis.call('ZADD', K.gone, now + REMEMBERED, runner)
end
redis.call('ZREMRANGEBYSCORE', K.gone, '-inf', now)

-- Whether any job of this claim runs still; those that do are answered.
local function add_jobs(field, runner, ids)
  local alive = false
  for at = 1, #ids, 36 do
    if #answer > most then return true end
    local id = string.sub(ids, at, at + 35)
    local value = redis.call('HGET', K.jobs, id)
    local r = value and read_record(value)
    if r and r.letter == RUNNING and r.runner == runner and field == runner .. ':' .. string.format('%.0f', r.claim) then
      alive = true
      answer[#answer + 1] = {id, value, has(r.flags, MORE) and redis.call('HGET', K.more, id) or ''}
    end
  end
  return alive
end

for _, field in ipairs(redis.call('HKEYS', K.held)) do
  local runner = string.match(field, '^(.*):')
  if gone[runner] then
    if #answer > most then break end
    if not add_jobs(field, runner, redis.call('HGET', K.held, field)) then
      redis.call('HDEL', K.held, field)
      redis.call('HDEL', K.left, field)
    end
  end
end
return answer

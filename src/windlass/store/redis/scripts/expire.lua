-- expire: waiting jobs that have not started in time are cancelled, the longest expired first. The request is how many at
-- most, which is never more than one call may do; 0 is a look. Answers with how many went, and how long until the next one expires (nothing: none does).
-- uses: call, calloff
-- keys: queue expiring jobs
local problem = strange()
if problem then return problem end
local now = the_time()
local MOST = 100
local lines, gone = {}, 0

if request > 0 then
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', K.expiring, '-inf', now, 'LIMIT', 0, math.min(request, MOST))) do
    local value = redis.call('HGET', K.jobs, id)
    local r = value and read_record(value)
    if r and waiting_letters[r.letter] then
      call_off(id, r, 'expired', now, lines)
      gone = gone + 1
    else
      redis.call('ZREM', K.expiring, id)
    end
  end
  move_up(lines, now)
end
local first = redis.call('ZRANGE', K.expiring, 0, 0, 'WITHSCORES')
return {gone, first[2] and first[2] - now}

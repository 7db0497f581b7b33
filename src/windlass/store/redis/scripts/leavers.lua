-- leavers: jobs on their way from here to other queues. The request is how many microseconds they must have been at it,
-- and how many at most. The answer: {id, {target, record, more, notes}} of each.
-- uses: call
-- keys: queue leaving
local problem = strange()
if problem then return problem end
local least, most = request[1], request[2]
if redis.call('EXISTS', K.leaving) == 0 then return {} end
local MOST_READ = 500
local now, answer, cursor, read = the_time(), {}, '0', 0
repeat
  local found
  cursor, found = unpack(redis.call('HSCAN', K.leaving, cursor, 'COUNT', most))
  for i = 1, #found, 2 do
    local since, packet = unpack(cmsgpack.unpack(found[i + 1]))
    if #answer < most and now - since >= least then answer[#answer + 1] = {found[i], packet} end
  end
  read = read + #found / 2
until cursor == '0' or #answer == most or read >= MOST_READ
return answer

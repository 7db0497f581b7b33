-- unfinished_moves: jobs that are moving from here to other queues. Request: minimum age in microseconds, the
-- maximum. Reply: {id, {target, record, details, notes}} of each.
--! effect: reads
local least, max_count = request[1], request[2]
if redis.call('EXISTS', K.moving) == 0 then return {} end
local MAX_READ = 500
local now, answer, cursor, read = now_micros(), {}, '0', 0
repeat
  local found
  cursor, found = unpack(redis.call('HSCAN', K.moving, cursor, 'COUNT', max_count))
  for i = 1, #found, 2 do
    local since, packet = unpack(cmsgpack.unpack(found[i + 1]))
    if #answer < max_count and now - since >= least then answer[#answer + 1] = {found[i], packet} end
  end
  read = read + #found / 2
until cursor == '0' or #answer == max_count or read >= MAX_READ
return answer

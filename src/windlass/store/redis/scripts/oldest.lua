-- oldest: since when the job of this queue waits that waits longest. The answer is the time, and the moment; 0: none. A type has
-- its own line for each priority, in which it is the first; so many lines are looked at.
-- uses: call
-- keys: queue pend ready
local problem = strange()
if problem then return problem end
local MOST_LINES = 500
local looks, found = 0, nil

local function look_at_type(number)
  local from, past = '[' .. struct.pack('>I4', number), '(' .. struct.pack('>I4', number + 1)
  while looks < MOST_LINES do
    looks = looks + 1
    local head = redis.call('ZRANGEBYLEX', K.ready, from, past, 'LIMIT', 0, 1)[1]
    if not head then return end
    local _, urgency, rank = struct.unpack('>I4I2I8', head)
    if not found or rank < found then found = rank end
    if urgency == 65535 then return end
    from = '[' .. struct.pack('>I4I2', number, urgency + 1)
  end
end

local pend = redis.call('HGETALL', K.pend)
for i = 1, #pend, 2 do
  if tonumber(pend[i + 1]) > 0 then look_at_type(tonumber(pend[i])) end
end
return {the_time(), found or 0}

-- follow: tell those who wait for jobs that have ended, live again, have moved or are gone (`wake`), as many as one call
-- may. The request is how many microseconds old what lies in `outbox` must be to be answered too (-1: none of it). Answers
-- with what is to be done here (`to_do`), then field and value of what is to be delivered to other queues.
-- uses: call, heirs, line
-- keys: queue wake outbox
local problem = strange()
if problem then return problem end
local MOST_TOLD, MOST_PAGES, MOST_ANSWERED, MOST_BYTES = 80, 100, 100, 1000000
if redis.call('EXISTS', K.wake, K.outbox) == 0 then return {0} end
local work = {left = MOST_TOLD, now = the_time(), lines = {}, sent = {}}

local function wake_one(field, value)
  local parent = string.sub(field, -36)
  local is_done
  if parent == field then
    is_done = tell(parent, value, work)
  elseif redis.call('HEXISTS', K.wake, parent) == 0 then
    is_done = forget_heirs(parent, work)
  end
  if is_done then redis.call('HDEL', K.wake, field) end
end

-- What is told may wake others, who are told by the next round.
local function wake_some()
  local cursor, page = '0', nil
  repeat
    work.left, work.pages = work.left - 1, (work.pages or 0) + 1
    cursor, page = unpack(redis.call('HSCAN', K.wake, cursor, 'COUNT', 20))
    for i = 1, #page, 2 do
      if work.left > 0 and redis.call('HGET', K.wake, page[i]) == page[i + 1] then
        work.left = work.left - 1
        wake_one(page[i], page[i + 1])
      end
    end
  until cursor == '0' or work.left <= 0 or work.pages >= MOST_PAGES
end

while work.left > 0 and work.pages ~= MOST_PAGES and redis.call('EXISTS', K.wake) == 1 do wake_some() end
move_up(work.lines, work.now)

-- What somebody else should have delivered.
local function add_old(least)
  local cursor, found, bytes = '0', nil, 0
  for _ = 1, 5 do
    cursor, found = unpack(redis.call('HSCAN', K.outbox, cursor, 'COUNT', MOST_ANSWERED))
    for i = 1, #found, 2 do
      local is_old = work.now - struct.unpack('>I8', found[i + 1]) >= least
      if is_old and #work.sent < 2 * MOST_ANSWERED and bytes < MOST_BYTES then
        work.sent[#work.sent + 1], work.sent[#work.sent + 2] = found[i], found[i + 1]
        bytes = bytes + #found[i + 1]
      end
    end
    if cursor == '0' then return end
  end
end

if request >= 0 then add_old(request) end
return {to_do(), unpack(work.sent)}

-- deliver: children of this queue are told how their parents are. The request is a list of {child, parent, letter}, and a
-- list of {child, moment} of those who have asked all of their parents; blobs: the result of each of the former. Answers with
-- what is to be done here (`to_do`), then for each 1, or 0 if the child was moved.
-- uses: call, heirs, line
-- keys: queue jobs wake asking
local problem = strange()
if problem then return problem end
local now, lines, answer = the_time(), {}, {}

local function hand_over(child, parent, letter, result)
  local value = redis.call('HGET', K.jobs, child)
  if not value then return is_elsewhere(child) and 0 or 1 end
  -- One that waits again asks once more: what we were told may be old by now.
  if letter == MOVED or tell_child(child, value, parent, letter, result, now, lines) then ask(child, now) end
  return 1
end

-- One that waits still asks again later: where a server failed over, its parent may know nothing of it any more.
local AGAIN = 3600000000
local function have_asked(child)
  local value = redis.call('HGET', K.jobs, child)
  if value and string.byte(value) == BLOCKED then
    redis.call('ZADD', K.asking, now + AGAIN, child)
  else
    redis.call('ZREM', K.asking, child)
  end
end

for i, entry in ipairs(request[1]) do answer[i + 1] = hand_over(entry[1], entry[2], entry[3], ARGV[3 + i]) end
for _, entry in ipairs(request[2]) do
  local asked = redis.call('ZSCORE', K.asking, entry[1])
  if asked and tonumber(asked) == entry[2] then have_asked(entry[1]) end
end
move_up(lines, now)
answer[1] = to_do()
return answer

-- child: what becomes of a job of this queue when one of its parents ends, as core/chain.py says. Who has come is known by
-- the child's own record: WAITS as long as any is missing, and who came first in its input. So being told twice is as
-- good as once. As long as it waits its `rank` is the delay that counts from when the last of them completed.
-- uses: record, text, place, calloff, hold, line, more
-- keys: asking wake
local ONE_PARENT = 40  -- as long as JSON of one id

local AT_ONCE = 1000000  -- who is later in `asking` than that has asked, and does so again then

-- A child must ask its parents how they are (`register`): each time anew.
local asked_here = {}
local function ask(child, now)
  local before = tonumber(redis.call('ZSCORE', K.asking, child) or 0)
  if before > now + AT_ONCE then before = 0 end
  redis.call('ZADD', K.asking, math.max(now, before + 1), child)
  asked_here[1] = true
end

-- What a script answers with first: 1 if there is more to tell (`follow`), 2 if anybody must ask; both added up.
local function to_do()
  return redis.call('EXISTS', K.wake) + (asked_here[1] and 2 or 0)
end

local function copied(r)
  local copy = {}
  for name, value in pairs(r) do copy[name] = value end
  return copy
end

local function awaits(r, parent)
  if not has(r.flags, WAITS) or not string.find(fields_of(r)[PARENTS], parent, 1, true) then return false end
  local input = input_of(r)
  return not (input and string.find(input, '["' .. parent, 1, true))
end

-- A parent has completed: its result, if that is taken, and whether it was the last. In JSON no text within a string can
-- look like the beginning of an entry.
local function take_in(r, parent, result)
  local parents, takes, input = fields_of(r)[PARENTS], fields_of(r)[TAKES], input_of(r)
  local wanted = takes and string.find(takes, parent, 1, true)
  if wanted or #parents > ONE_PARENT then
    local text = wanted and result ~= '' and cjson.encode(result) or 'null'
    local entry = '["' .. parent .. '",' .. text .. ']'
    input = input and string.sub(input, 1, -2) .. ',' .. entry .. ']' or '[' .. entry .. ']'
    set_input(r, input)
  end
  local came = input and select(2, string.gsub(input, '%["', '')) or 1
  if 39 * came + 1 >= #parents then r.flags = r.flags - WAITS end
end

-- Nothing is missing any more: it is due, at the earliest after its delay (core.chain.due_after). With a key it goes to
-- the line.
local function let_go(r, now, lines)
  r.run_at = math.max(r.run_at > r.created and r.run_at or now, now + r.rank)
  r.rank, r.updated = r.run_at, now
  if r.run_at > now then
    r.letter = SCHEDULED
  elseif has(r.flags, LINED) then
    r.letter = IN_LINE
    at_line(lines, r)
  else
    r.letter = PENDING
  end
end

local function called_off_by(parent, letter)
  return 'its parent ' .. parent .. ' is ' .. (letter == DEAD and 'dead' or 'cancelled')
end

local function was_called_off(id, r, parent)
  if r.letter ~= CANCELLED then return false end
  local reason = read_more(id, r).reason
  return reason == called_off_by(parent, DEAD) or reason == called_off_by(parent, CANCELLED)
end

-- A cancelled job goes back to wait, with a fresh budget and no expiry. Not if another one has its key by now: nil.
local function wait_again(id, r, now, lines)
  if has(r.flags, KEYED) and take_key(id, fields_of(r)[KEY_DIGEST], now) then return nil end
  local before, more = copied(r), read_more(id, r)
  more.reason = nil
  write_more(id, r, more)
  r.letter, r.updated, r.slot, r.expires, r.failures, r.crashes = BLOCKED, now, -1, 0, 0, 0
  r.runner, r.claim, r.claimed, r.started = '', 0, 0, 0
  r.urgency, r.lifted = r.urgency + r.lifted, 0
  if has(r.flags, CANCELLING) then r.flags = r.flags - CANCELLING end
  put_record(id, before, r, now, lines)
  -- Others of its parents may have ended badly, too.
  if not has(r.flags, LONE) then ask(id, now) end
  return true
end

local function come(id, r, parent, result, now, lines)
  if was_called_off(id, r, parent) then wait_again(id, r, now, lines) end
  local before = copied(r)
  take_in(r, parent, result)
  if r.letter == BLOCKED and not has(r.flags, WAITS) then
    redis.call('ZREM', K.asking, id)
    let_go(r, now, lines)
    put_record(id, before, r, now, lines)
  else
    r.version = r.version + 1
    redis.call('HSET', K.jobs, id, write_record(r))
  end
end

-- Tell a child of this queue, whose record is `value`, that its parent has this letter now. True, if it waits again.
local function tell_child(id, value, parent, letter, result, now, lines)
  local r = read_record(value)
  if not awaits(r, parent) then return end
  if letter == COMPLETED then
    come(id, r, parent, result, now, lines)
  elseif letter == DEAD or letter == CANCELLED then
    if r.letter == BLOCKED then call_off(id, r, called_off_by(parent, letter), now, lines) end
  elseif was_called_off(id, r, parent) then
    return wait_again(id, r, now, lines)
  end
end

-- notify_dependents: notify dependents of changed parents (`parent_changes`), a bounded number. Request: minimum age
-- in microseconds of old mail in `outbox` to return as well (-1: none). Reply: `to_do` of this queue, then field and
-- value of mail for other queues.
--! effect: writes
--! uses: dependents, key_queue
local MAX_NOTIFIED, MAX_PAGES, MAX_ANSWERED, MAX_BYTES = 80, 100, 100, 1000000
if redis.call('EXISTS', K.parent_changes, K.outbox) == 0 then return {0} end
local work = {left = MAX_NOTIFIED, now = now_micros(), dirty_keys = {}, sent = {}}

local function notify_for_parent(field, value)
  local parent = string.sub(field, -36)
  local is_done
  if parent == field then
    is_done = notify_dependents(parent, value, work)
  elseif redis.call('HEXISTS', K.parent_changes, parent) == 0 then
    is_done = forget_dependents(parent, work)
  end
  if is_done then redis.call('HDEL', K.parent_changes, field) end
end

-- A notification may change other parents, whose dependents are notified in the next round.
local function notify_some()
  local cursor, page = '0', nil
  repeat
    work.left, work.pages = work.left - 1, (work.pages or 0) + 1
    cursor, page = unpack(redis.call('HSCAN', K.parent_changes, cursor, 'COUNT', 20))
    for i = 1, #page, 2 do
      if work.left > 0 and redis.call('HGET', K.parent_changes, page[i]) == page[i + 1] then
        work.left = work.left - 1
        notify_for_parent(page[i], page[i + 1])
      end
    end
  until cursor == '0' or work.left <= 0 or work.pages >= MAX_PAGES
end

while work.left > 0 and work.pages ~= MAX_PAGES and redis.call('EXISTS', K.parent_changes) == 1 do notify_some() end
assign_key_slots(work.dirty_keys, work.now)

-- Add mail that its sender did not deliver.
local function add_old_mail(least)
  local cursor, found, bytes = '0', nil, 0
  for _ = 1, 5 do
    cursor, found = unpack(redis.call('HSCAN', K.outbox, cursor, 'COUNT', MAX_ANSWERED))
    for i = 1, #found, 2 do
      local is_old = work.now - struct.unpack('>I8', found[i + 1]) >= least
      if is_old and #work.sent < 2 * MAX_ANSWERED and bytes < MAX_BYTES then
        work.sent[#work.sent + 1], work.sent[#work.sent + 2] = found[i], found[i + 1]
        bytes = bytes + #found[i + 1]
      end
    end
    if cursor == '0' then return end
  end
end

if request >= 0 then add_old_mail(request) end
return {to_do(), unpack(work.sent)}

-- replace_records: replace records by new ones, each on its own. Request: {id, version, details} of each: the
-- version that was read, and what becomes of its details (0: unchanged, 1: replaced, 2: removed). Blobs: for each the
-- record, then its details if replaced. Reply for each: its letter; 0 if it has changed or is gone; the id of the job
-- that has its idempotency key. A job that is blocked again registers with its parents.
--! effect: writes
--! uses: record, indexes, replace_record, idempotency_keys, key_queue, hint
local now = now_micros()
local dirty_keys, answer, stopped = {}, {}, 0

local function put(entry, record, details)
  local id, version = entry[1], entry[2]
  local before = read_job(id)
  if not before or before.version ~= version then return 0 end
  local r = read_record(record)
  if has(r.flags, HAS_IDEMPOTENCY_KEY) and finished_letters[before.letter] and not finished_letters[r.letter] then
    local holder = take_key(id, fields_of(r)[KEY_DIGEST], now)
    if holder then return holder end
  end
  if details then
    redis.call('HSET', K.details, id, details)
  elseif entry[3] == 2 then
    redis.call('HDEL', K.details, id)
  end
  if r.letter == BLOCKED and finished_letters[before.letter] then redis.call('ZADD', K.parent_checks, now, id) end
  replace_record(id, before, r, now, dirty_keys)
  if before.letter == RUNNING and r.letter ~= RUNNING then stopped = stopped + 1 end
  return r.letter
end

local at = 4
for i, entry in ipairs(request) do
  local record, details = ARGV[at], entry[3] == 1 and ARGV[at + 1]
  at = at + (details and 2 or 1)
  answer[i] = put(entry, record, details)
end
local granted = assign_key_slots(dirty_keys, now)
for i, entry in ipairs(request) do
  if granted[entry[1]] and answer[i] == WAITING_FOR_KEY then answer[i] = PENDING end
end
hint_if_room(stopped)
return answer

-- child_state: what happens to a child of this queue when a parent ends, as in core/jobs/dependencies.py. The child's
-- record says which parents have completed: it has WAITS_FOR_PARENTS until all have, and those that have are in its
-- parent results. So notifying twice is safe. While it waits, its `rank` is the delay after the last parent's
-- completion.
--! uses: record, replace_record, idempotency_keys, key_queue, details
local ONE_PARENT_SIZE = 40  -- length of the JSON of one id

local CHECK_NOW = 1000000  -- an entry in `parent_checks` that is further ahead than this is a periodic check

-- Let a child register with its parents again (`register_children`).
local checks_requested = {}
local function request_parent_check(child, now)
  local before = tonumber(redis.call('ZSCORE', K.parent_checks, child) or 0)
  if before > now + CHECK_NOW then before = 0 end
  redis.call('ZADD', K.parent_checks, math.max(now, before + 1), child)
  checks_requested[1] = true
end

-- First in a reply: 1 if dependents must be notified (`notify_dependents`), plus 2 if children must register.
local function to_do()
  return redis.call('EXISTS', K.parent_changes) + (checks_requested[1] and 2 or 0)
end

local function copied(r)
  local copy = {}
  for name, value in pairs(r) do copy[name] = value end
  return copy
end

local function awaits(r, parent)
  if not has(r.flags, WAITS_FOR_PARENTS) or not string.find(fields_of(r)[PARENTS], parent, 1, true) then return false end
  local parent_results = parent_results_of(r)
  return not (parent_results and string.find(parent_results, '["' .. parent, 1, true))
end

-- Number of entries, by plain searches: a pattern would copy megabytes of results.
local function entries_in(parent_results)
  local entries, at = 0, 1
  while at do
    at = select(2, string.find(parent_results, '["', at, true))
    if at then entries = entries + 1 end
  end
  return entries
end

-- Add a completed parent, with its result if the job takes it; after the last one, remove WAITS_FOR_PARENTS. In
-- JSON no text within a string can look like the beginning of an entry.
local function add_parent_result(r, parent, result)
  local parents, result_params, parent_results = fields_of(r)[PARENTS], fields_of(r)[RESULT_PARAMS], parent_results_of(r)
  local wanted = result_params and string.find(result_params, parent, 1, true)
  if wanted or #parents > ONE_PARENT_SIZE then
    local text = wanted and result ~= '' and cjson.encode(result) or 'null'
    local entry = '["' .. parent .. '",' .. text .. ']'
    parent_results = parent_results and string.sub(parent_results, 1, -2) .. ',' .. entry .. ']' or '[' .. entry .. ']'
    set_parent_results(r, parent_results)
  end
  local completed = parent_results and entries_in(parent_results) or 1
  if 39 * completed + 1 >= #parents then r.flags = r.flags - WAITS_FOR_PARENTS end
end

-- All parents have completed: make the job due after its delay (due_after in core); it waits for its concurrency key,
-- if it has one.
local function make_due(r, now, dirty_keys)
  r.run_at = math.max(r.run_at > r.created and r.run_at or now, now + r.rank)
  r.rank, r.updated = r.run_at, now
  if r.run_at > now then
    r.letter = SCHEDULED
  elseif has(r.flags, HAS_CONCURRENCY_KEY) then
    r.letter = WAITING_FOR_KEY
    mark_dirty(dirty_keys, r)
  else
    r.letter = PENDING
  end
end

local function cancel_reason(parent, letter)
  return 'its parent ' .. parent .. ' is ' .. (letter == DEAD and 'dead' or 'cancelled')
end

local function was_cancelled_by(id, r, parent)
  if r.letter ~= CANCELLED then return false end
  local reason = read_details(id, r).reason
  return reason == cancel_reason(parent, DEAD) or reason == cancel_reason(parent, CANCELLED)
end

-- Let a cancelled job wait for its parents again, with a fresh budget and no expiry; nil: another job has its key.
local function block_again(id, r, now, dirty_keys)
  if has(r.flags, HAS_IDEMPOTENCY_KEY) and take_key(id, fields_of(r)[KEY_DIGEST], now) then return nil end
  local before, details = copied(r), read_details(id, r)
  details.reason = nil
  write_details(id, r, details)
  r.letter, r.updated, r.key_slot, r.expires, r.failures, r.crashes = BLOCKED, now, -1, 0, 0, 0
  r.runner, r.claim, r.claimed, r.started = '', 0, 0, 0
  r.sort_priority, r.aged_by = r.sort_priority + r.aged_by, 0
  if has(r.flags, CANCEL_REQUESTED) then r.flags = r.flags - CANCEL_REQUESTED end
  replace_record(id, before, r, now, dirty_keys)
  -- Other parents may have failed too.
  if not has(r.flags, ONE_PARENT) then request_parent_check(id, now) end
  return true
end

-- Record that a parent has completed, or ended in a way that releases the child; after the last one the child is due.
local function parent_completed(id, r, parent, result, now, dirty_keys)
  if was_cancelled_by(id, r, parent) then block_again(id, r, now, dirty_keys) end
  local before = copied(r)
  add_parent_result(r, parent, result)
  if r.letter == BLOCKED and not has(r.flags, WAITS_FOR_PARENTS) then
    redis.call('ZREM', K.parent_checks, id)
    make_due(r, now, dirty_keys)
    replace_record(id, before, r, now, dirty_keys)
  else
    r.version = r.version + 1
    redis.call('HSET', K.jobs, id, write_record(r))
  end
end

-- Apply the state of a parent to a child with the record `value`. True if a cancelled child is blocked again.
local function apply_parent_state(id, value, parent, letter, result, now, dirty_keys)
  local r = read_record(value)
  if not awaits(r, parent) then return end
  if letter == COMPLETED or (letter == DEAD or letter == CANCELLED) and has(r.flags, WHEN_ENDED) then
    parent_completed(id, r, parent, result, now, dirty_keys)
  elseif letter == DEAD or letter == CANCELLED then
    if r.letter == BLOCKED then cancel_waiting(id, r, cancel_reason(parent, letter), now, dirty_keys) end
  elseif was_cancelled_by(id, r, parent) then
    return block_again(id, r, now, dirty_keys)
  end
end

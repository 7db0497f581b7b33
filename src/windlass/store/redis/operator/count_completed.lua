-- count_completed: count the completed children of a job between two ids, up to the first live one, a bounded number at
-- a time. Request: the parent, the id after which and the id before which they are. Reply: the last id (empty: the end),
-- their number (-1: too many jobs of the queue ended without completing), the first live one (empty: none), and 1 if
-- children may be moving to another queue.
--! effect: reads
--! uses: byte_order, lost_ids, few_ids
--! keys: queue, counts, jobs, ready, due, by_status, waiting_for_key, parked, children, drop_times, moving
local parent, after, before = unpack(request, 1, 3)
local MAX_COUNTED, STEP, MAX_FEW = 4000, 1000, 200

local function is_between(id) return comes_before(after, id) and comes_before(id, before) end

-- If the live jobs of the queue are known: all other children have completed, except the lost ones.
local function count_kept(live, lost)
  local first = before
  for _, id in ipairs(live) do
    if is_between(id) and comes_before(id, first) and redis.call('ZSCORE', K.children, parent .. id)
      and not redis.call('ZSCORE', K.drop_times, id) then first = id end
  end
  local kept = redis.call('ZLEXCOUNT', K.children, '(' .. parent .. after, '(' .. parent .. first)
  for id in pairs(lost) do
    if is_between(id) and comes_before(id, first) and redis.call('ZSCORE', K.children, parent .. id) then kept = kept - 1 end
  end
  return '', kept, first == before and '' or first
end

-- Count child by child; ended jobs are those with a time at which they are dropped.
local function count_each(lost)
  local completed, counted = 0, 0
  while counted < MAX_COUNTED do
    local ids = redis.call('ZRANGEBYLEX', K.children, '(' .. parent .. after, '(' .. parent .. before, 'LIMIT', 0, STEP)
    for i, member in ipairs(ids) do ids[i] = string.sub(member, #parent + 1) end
    for i, drop_time in ipairs(#ids > 0 and redis.call('ZMSCORE', K.drop_times, unpack(ids)) or {}) do
      if not drop_time then return '', completed, ids[i] end
      if not lost[ids[i]] then completed = completed + 1 end
    end
    if #ids < STEP then return '', completed, '' end
    after, counted = ids[#ids], counted + #ids
  end
  return after, completed, ''
end

local moving, lost = redis.call('EXISTS', K.moving), lost_ids('dx', MAX_FEW)
if not lost then return {'', -1, '', moving} end
local live = few_ids('pstflkrb', parent, MAX_FEW)
local last, completed, first
if live then last, completed, first = count_kept(live, lost) else last, completed, first = count_each(lost) end
return {last, completed, first, moving}

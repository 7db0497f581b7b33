-- few_ids: all jobs of some statuses, where a queue has few of them.
--! uses: record, claims
-- The index to read for each status. Blocked jobs have none: those of a group are usually its callbacks, which are its
-- last children.
local INDEXES = {p = 'ready', s = 'due', t = 'due', f = 'due', l = 'waiting_for_key', k = 'parked', d = 'by_status', x = 'by_status'}
local LAST_CHILDREN = 10

local function jobs_of(letter)
  local index = INDEXES[letter]
  if index then return redis.call('ZCARD', K[index]) end
  return tonumber(redis.call('HGET', K.counts, letter) or 0)
end

-- All blocked jobs, if they are among the last children of this parent.
local function blocked_ids(parent)
  local blocked, ids = jobs_of('b'), {}
  if blocked == 0 then return ids end
  if not parent or blocked > LAST_CHILDREN then return false end
  local last = redis.call('ZREVRANGEBYLEX', K.children, '(' .. parent .. 'g', '[' .. parent, 'LIMIT', 0, LAST_CHILDREN)
  for i, member in ipairs(last) do last[i] = string.sub(member, #parent + 1) end
  for i, value in ipairs(#last > 0 and redis.call('HMGET', K.jobs, unpack(last)) or {}) do
    if value and string.sub(value, 1, 1) == 'b' then ids[#ids + 1] = last[i] end
  end
  return #ids == blocked and ids
end

local function ids_at(letter, parent, max_count)
  local index = INDEXES[letter]
  if index then
    local ids = redis.call('ZRANGE', K[index], 0, -1)
    for i, member in ipairs(ids) do ids[i] = string.sub(member, -36) end
    return ids
  end
  if letter == 'b' then return blocked_ids(parent) end
  if letter ~= 'r' then return jobs_of(letter) == 0 and {} end
  local held, are_all = held_ids(2 * max_count)  -- a claim also has jobs that ended since
  return are_all and #held <= 2 * max_count and held
end

-- All ids with one of these letters, and maybe some others; false: more than `max_count`, or too many to read.
local function few_ids(letters, parent, max_count)
  local jobs, ids, seen = 0, {}, {}
  for letter in string.gmatch(letters, '.') do
    jobs = jobs + (letter == 'b' and 0 or jobs_of(letter))
    if jobs > max_count then return false end
  end
  for letter in string.gmatch(letters, '.') do
    local index = INDEXES[letter] or letter
    local found = seen[index] and {} or ids_at(letter, parent, max_count)
    if not found then return false end
    seen[index] = true
    for _, id in ipairs(found) do ids[#ids + 1] = id end
  end
  return ids
end

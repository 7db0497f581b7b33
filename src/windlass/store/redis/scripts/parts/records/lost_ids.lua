-- lost_ids: the jobs that ended without completing, where a queue has few of them.
-- A set of ids with one of these letters ('d', 'x'); false: more than `max_count` have one of them.
local function lost_ids(letters, max_count)
  local lost = {}
  for letter in string.gmatch(letters, '.') do
    local members = redis.call('ZRANGEBYLEX', K.by_status, '[' .. letter, '(' .. letter .. 'g', 'LIMIT', 0, max_count + 1)
    if #members > max_count then return false end
    for _, member in ipairs(members) do lost[string.sub(member, 2)] = true end
  end
  return lost
end

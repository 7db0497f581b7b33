-- laning: a queue has become fair, and the jobs that wait in it are told whose turn they wait for, a portion at a time. New
-- ones know it from the start. `laning` among the settings says how far that has come: 1, or the last place that was seen.
-- uses: record, index
-- keys: queue jobs ready lanes
local LANED_AT_ONCE = 250

-- One portion; whether there is more to do.
local function put_in_lanes()
  local after = redis.call('HGET', K.queue, 'laning')
  if not after then return false end
  local from = after == '1' and '-' or '(' .. after
  local members = redis.call('ZRANGEBYLEX', K.ready, from, '+', 'LIMIT', 0, LANED_AT_ONCE)
  local ids, places = {}, {}
  for i, member in ipairs(members) do ids[i] = string.sub(member, -36) end
  for i, value in ipairs(#ids > 0 and redis.call('HMGET', K.jobs, unpack(ids)) or {}) do
    if value then
      places[#places + 1] = 0
      places[#places + 1] = lane_member(ids[i], read_record(value))
    end
  end
  if #places > 0 then redis.call('ZADD', K.lanes, unpack(places)) end
  if #members == LANED_AT_ONCE then
    redis.call('HSET', K.queue, 'laning', members[#members])
    return true
  end
  redis.call('HDEL', K.queue, 'laning')
  return false
end

-- park: park pending jobs of types that no live worker knows. Their key slots are freed, except in strict order.
-- Request: types, the maximum. Reply: how many jobs of each type.
--! effect: writes
--! uses: record, indexes, key_queue
local now = now_micros()
local types, left = unpack(request, 1, 2)
local dirty_keys, answer, text, MAX_TEXT = {}, {}, 0, 1000000

local function park(id)
  local r, value = read_job(id)
  text = text + #value
  remove_from_indexes(id, r)
  if r.key_slot >= 0 and not has(r.flags, STRICT) then
    r.key_slot = -1
    mark_dirty(dirty_keys, r)
  end
  r.letter, r.version, r.updated = PARKED, r.version + 1, now
  redis.call('HSET', K.jobs, id, write_record(r))
  add_to_indexes(id, r)
end

for i, name in ipairs(types) do
  local number = tonumber(redis.call('HGET', K.types, name))
  local from, to = '[' .. struct.pack('>I4', number), '(' .. struct.pack('>I4', number + 1)
  local members = redis.call('ZRANGEBYLEX', K.ready, from, to, 'LIMIT', 0, left)
  answer[i] = 0
  for _, member in ipairs(members) do
    if text > MAX_TEXT then break end
    park(string.sub(member, 15))
    answer[i] = answer[i] + 1
  end
  left = left - answer[i]
end
assign_key_slots(dirty_keys, now)
return answer

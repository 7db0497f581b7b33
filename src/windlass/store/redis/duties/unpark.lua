-- unpark: jobs of types that a worker knows become pending again at their old rank, or wait for their key.
-- Request: types, the maximum. Reply: how many jobs.
--! effect: writes
--! uses: record, indexes, key_queue
local now = now_micros()
local types, max_count = unpack(request, 1, 2)
local dirty_keys, freed, text, MAX_TEXT = {}, 0, 0, 1000000

local function unpark(id, member)
  local r, value = read_job(id)
  if not r or r.letter ~= PARKED then
    redis.call('ZREM', K.parked, member)  -- the job was removed by hand, or a script was stopped: the record decides
    return
  end
  freed, text = freed + 1, text + #value
  remove_from_indexes(id, r)
  r.letter, r.version, r.updated = PENDING, r.version + 1, now
  if has(r.flags, HAS_CONCURRENCY_KEY) and r.key_slot < 0 then
    r.letter = WAITING_FOR_KEY
    mark_dirty(dirty_keys, r)
  end
  redis.call('HSET', K.jobs, id, write_record(r))
  add_to_indexes(id, r)
end

for _, name in ipairs(types) do
  local number = tonumber(redis.call('HGET', K.types, name))
  local from, to = '[' .. struct.pack('>I4', number), '(' .. struct.pack('>I4', number + 1)
  local members = redis.call('ZRANGEBYLEX', K.parked, from, to, 'LIMIT', 0, max_count - freed)
  for _, member in ipairs(members) do
    if text > MAX_TEXT then break end
    unpark(string.sub(member, 13), member)
  end
end
assign_key_slots(dirty_keys, now)
return freed

-- move_done: forget jobs that were stored in their new queue, and free their idempotency keys here. Request: {id,
-- version} of each, since a job may have come back and be moving again. Its dependents here register with it again.
--! effect: writes
--! uses: record, idempotency_keys, drop, parent_changes
local now = now_micros()

local function forget_moved(id, version)
  local kept = redis.call('HGET', K.moving, id)
  local r = kept and read_record(cmsgpack.unpack(kept)[2][2])
  if not r or r.version ~= version then return end
  redis.call('HDEL', K.moving, id)
  if has(r.flags, HAS_IDEMPOTENCY_KEY) then free_key(id, fields_of(r)[KEY_DIGEST]) end
  remember_moved(id, version, now)
  if has(r.flags, HAS_DEPENDENTS) then note_parent_state(id, MOVED, '') end
end

for _, entry in ipairs(request) do forget_moved(entry[1], entry[2]) end
return 1

-- departed: jobs that left have come to their queues; their keys are free here. The request is their ids.
-- uses: call, record, hold, moved
-- keys: queue leaving keys windows
local problem = strange()
if problem then return problem end
local now = the_time()
for _, id in ipairs(request) do
  local kept = redis.call('HGET', K.leaving, id)
  if kept then
    local r = read_record(cmsgpack.unpack(kept)[2][2])
    redis.call('HDEL', K.leaving, id)
    if has(r.flags, KEYED) then free_key(id, fields_of(r)[KEY_DIGEST]) end
    remember_moved(id, r.version, now)
  end
end
return 1

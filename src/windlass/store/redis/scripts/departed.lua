-- departed: jobs that left have come to their queues; their keys are free here. The request is {id, version} of each: it
-- may have come back since, and be on its way again, with another version. Who waits for them here must ask for them anew.
-- uses: call, record, hold, moved, stir
-- keys: queue leaving keys windows
local problem = strange()
if problem then return problem end
local now = the_time()

local function leave_behind(id, version)
  local kept = redis.call('HGET', K.leaving, id)
  local r = kept and read_record(cmsgpack.unpack(kept)[2][2])
  if not r or r.version ~= version then return end
  redis.call('HDEL', K.leaving, id)
  if has(r.flags, KEYED) then free_key(id, fields_of(r)[KEY_DIGEST]) end
  remember_moved(id, version, now)
  if has(r.flags, HEIRS) then stir_as(id, MOVED, '') end
end

for _, entry in ipairs(request) do leave_behind(entry[1], entry[2]) end
return 1

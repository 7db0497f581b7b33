-- set_queue: write the settings of a queue, if they have not changed since they were read. Request: the version
-- that was read, fields and values to set alternately, fields to remove. Reply: 1, or 0 if they have changed.
--! effect: writes
--! uses: hint
local version, set, unset = unpack(request, 1, 3)
if tonumber(redis.call('HGET', K.queue, 'version') or 0) ~= version then return 0 end
local was_fair = redis.call('HGET', K.queue, 'fair') == '1'
redis.call('HSET', K.queue, 'version', version + 1, unpack(set))
if #unset > 0 then redis.call('HDEL', K.queue, unpack(unset)) end
local is_fair = redis.call('HGET', K.queue, 'fair') == '1'
if is_fair and not was_fair and redis.call('ZCARD', K.ready) > 0 then
  redis.call('HSET', K.queue, 'assigning_tenants', 1)  -- pending jobs get their tenant queues in steps
elseif was_fair and not is_fair then
  redis.call('UNLINK', K.tenant_queues)  -- only a fair queue maintains them
  redis.call('HDEL', K.queue, 'assigning_tenants')
end
publish_hint()  -- waiting jobs may start now
return 1

-- set_queue: write the settings of a queue, if nobody has written them since they were read. The request is how often they
-- had been written then, the fields that hold now and their values one after the other, and the fields that do not.
-- The answer is 1, or 0 if somebody came between.
-- uses: call, hint
-- keys: queue ready lanes
local problem = strange()
if problem then return problem end
local version, set, unset = unpack(request, 1, 3)
if tonumber(redis.call('HGET', K.queue, 'version') or 0) ~= version then return 0 end
local was_fair = redis.call('HGET', K.queue, 'fair') == '1'
redis.call('HSET', K.queue, 'version', version + 1, unpack(set))
if #unset > 0 then redis.call('HDEL', K.queue, unpack(unset)) end
local is_fair = redis.call('HGET', K.queue, 'fair') == '1'
if is_fair and not was_fair and redis.call('ZCARD', K.ready) > 0 then
  redis.call('HSET', K.queue, 'laning', 1)  -- those who are here have no lane yet: they get one in steps
elseif was_fair and not is_fair then
  redis.call('UNLINK', K.lanes)  -- there are lanes only while somebody keeps them
  redis.call('HDEL', K.queue, 'laning')
end
announce()  -- what was held back may be let go now
return 1

-- drop_schedule: remove a schedule that has not changed since it was read and has no plan. Request: name, stamp.
-- Reply: 1, or 0 if it has. Queues remember its last plan, and its last tick is kept, since a schedule of the same name
-- makes the same job ids.
--! scope: global
--! effect: writes
--! uses: schedule_state
local name, stamp = unpack(request, 1, 2)
local state = redis.call('HGET', K.schedule_states, name)
state = state and read_state(state)
if not state or state.stamp ~= stamp or redis.call('HEXISTS', K.plans, name) == 1 then return 0 end
redis.call('HDEL', K.schedules, name)
redis.call('HDEL', K.schedule_states, name)
redis.call('ZREM', K.next_ticks, name)
redis.call('ZADD', K.removed_schedules, new_stamps(1, now_micros()), name)
if state.last > (tonumber(redis.call('HGET', K.meta, 'furthest')) or 0) then
  redis.call('HSET', K.meta, 'furthest', state.last)
end
return 1

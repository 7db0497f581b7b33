-- runners: the registrations of runners, ended runners, and dead ones. A runner is listed as dead from the removal of
-- its lease until all of its jobs are put back. Its id is never used again.
--! uses: lease_activity
-- A member of `registrations`: worker, runner, and a queue in which it may hold jobs.
local function registration_of(worker, runner, queue) return worker .. '\0' .. runner .. '\0' .. queue end

local function registrations_from(head)
  return redis.call('ZRANGEBYLEX', K.registrations, '[' .. head, '(' .. head .. '\255')
end

-- Ended runners are remembered for a day.
local REMEMBERED = 86400000000
local MAX_ENDED_FORGOTTEN = 20  -- more than are added

local function remember_ended_runner(runner, now)
  redis.call('ZADD', K.ended_runners, now + REMEMBERED, runner)
  local old = redis.call('ZRANGEBYSCORE', K.ended_runners, '-inf', now, 'LIMIT', 0, MAX_ENDED_FORGOTTEN)
  if #old > 0 then redis.call('ZREM', K.ended_runners, unpack(old)) end
end

local function remove_runner(runner, worker, now)
  drop_lease(runner)
  remember_ended_runner(runner, now)
  redis.call('HSET', K.dead_runners, runner, worker)
end

local function add_registrations(answer, worker, runner)
  for _, registration in ipairs(registrations_from(worker .. '\0' .. runner .. '\0')) do answer[#answer + 1] = registration end
end

-- dead_runners: a dead runner is listed from the removal of its lease until all of its jobs are put back. It never
-- comes back.
--! uses: lease_activity, registrations, ended_runners
--! keys: dead_runners

local function remove_runner(runner, worker, now)
  drop_lease(runner)
  remember_ended_runner(runner, now)
  redis.call('HSET', K.dead_runners, runner, worker)
end

local function add_registrations(answer, worker, runner)
  for _, registration in ipairs(registrations_from(worker .. '\0' .. runner .. '\0')) do answer[#answer + 1] = registration end
end

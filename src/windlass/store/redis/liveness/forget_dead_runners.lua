-- forget_dead_runners: remove dead runners, after all of their jobs were put back. Request: runners.
--! scope: global
--! effect: writes
--! uses: runners
for _, runner in ipairs(request) do
  local worker = redis.call('HGET', K.dead_runners, runner)
  if worker then
    for _, registration in ipairs(registrations_from(worker .. '\0' .. runner .. '\0')) do
      redis.call('ZREM', K.registrations, registration)
    end
    redis.call('HDEL', K.dead_runners, runner)
  end
end
return 1

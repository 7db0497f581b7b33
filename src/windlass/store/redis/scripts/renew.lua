-- renew: extend the leases that hold; the others are gone for good.
-- of the office
-- The request is worker, runners, length. The answer: a number for each runner, 1 if it is kept; and the worker's berths.
-- uses: office, pulse, berth
local problem = strange()
if problem then return problem end
local now = the_time()
local worker, runners, length = unpack(request, 1, 3)
feel_pulse(now)
local kept = {}
note_length(length, now)
for i, runner in ipairs(runners) do
  local lease = read_lease(runner, now)
  kept[i] = lease and lease.expires > now and 1 or 0
  if kept[i] == 1 then
    write_lease(runner, {expires = now + length, length = length, graced = 0, worker = lease.worker})
  end
end
return {kept, berths_from(worker .. '\0')}

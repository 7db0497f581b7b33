-- renew: extend the leases that hold; lapsed ones are lost for good. Request: runners, length. Reply for each: 1
-- if it is kept.
--! scope: global
--! effect: writes
--! uses: lease_activity
local now = now_micros()
local runners, length = unpack(request, 1, 2)
check_silence(now)
local kept, any = {}, false
note_length(length, now)
for i, runner in ipairs(runners) do
  local lease = read_lease(runner, now)
  kept[i] = lease and lease.expires > now and 1 or 0
  if kept[i] == 1 then
    write_lease(runner, {expires = now + length, length = length, graces = 0, worker = lease.worker})
    any = true
  end
end
if any then note_renewal(now) end
return kept

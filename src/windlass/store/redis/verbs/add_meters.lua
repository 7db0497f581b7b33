-- add_meters: add meters to the current interval. Request: length of an interval, and {queue, type, meter} of
-- each.
--! scope: global
--! effect: writes
--! uses: stats
local length, given = unpack(request, 1, 2)
local now = now_micros()
local head = start_head(now - now % length)
for _, each in ipairs(given) do add_meter(head .. each[1] .. '\0' .. each[2], each[3]) end
return 1

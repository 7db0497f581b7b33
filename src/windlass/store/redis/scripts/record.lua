-- record: add meters to the slot of this moment.
-- of the office
-- The request is the length of a slot, and a list of {queue, type, meter}.
-- uses: office, meter
local problem = strange()
if problem then return problem end
local length, given = unpack(request, 1, 2)
local now = the_time()
local head = slot_head(now - now % length)
for _, each in ipairs(given) do add_meter(head .. each[1] .. '\0' .. each[2], each[3]) end
return 1

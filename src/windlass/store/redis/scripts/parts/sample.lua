-- sample: what is kept of a minute or an hour. A place is kind (`s`: a meter, `d`: how many jobs there were), step, slot,
-- queue, type, so that places of a kind and step sort by time. A value is how much it says, and what.
-- uses: office
-- keys: samples steps
local PLACE, PLACE_SIZE = '>c1i8i8', 17

local function step_head(kind, step, slot) return struct.pack(PLACE, kind, step, slot) end

-- samples: samples of a minute or an hour. A place is kind (`s`: a meter, `d`: number of jobs), step, interval
-- start, queue, type, so that places of a kind and step sort by time. A value is the number of observations, and
-- the sample.
--! uses: global_call
--! keys: samples, sample_index
local PLACE, PLACE_SIZE = '>c1i8i8', 17

local function step_head(kind, step, slot) return struct.pack(PLACE, kind, step, slot) end

-- stats: meters and samples. A meter counts the attempts of one type in one queue that ended in one interval. Its field
-- is interval start, queue, type, so that fields sort by time; its value is the counters in order, and two histograms
-- as bin, number, bin, number…
local COUNTERS = 6

local START_SIZE = 8
local function start_head(start) return struct.pack('>i8', start) end

local function bins_of(flat)
  local bins = {}
  for i = 1, #flat, 2 do bins[flat[i]] = flat[i + 1] end
  return bins
end

-- Bins as a flat list: cmsgpack would pack bins 1, 2, 3 as an array, not as a map.
local function flat_of(bins)
  local flat = {}
  for bin, number in pairs(bins) do
    flat[#flat + 1] = bin
    flat[#flat + 1] = number
  end
  return flat
end

local function sum_of(one, other)
  local bins = bins_of(one)
  for i = 1, #other, 2 do bins[other[i]] = (bins[other[i]] or 0) + other[i + 1] end
  return flat_of(bins)
end

local function add_meter(field, meter)
  local before = redis.call('HGET', K.meters, field)
  if before then
    before = cmsgpack.unpack(before)
    for i = 1, COUNTERS do meter[i] = meter[i] + before[i] end
    for i = COUNTERS + 1, COUNTERS + 2 do meter[i] = sum_of(meter[i], before[i]) end
  else
    redis.call('ZADD', K.meter_index, 0, field)
  end
  redis.call('HSET', K.meters, field, cmsgpack.pack(meter))
end

-- Samples of a minute or an hour. A field is kind (`s`: a meter, `d`: number of jobs), step, interval
-- start, queue, type, so that fields of a kind and step sort by time. A value is the number of observations, and
-- the sample.
local STEP_HEAD, STEP_HEAD_SIZE = '>c1i8i8', 17

local function step_head(kind, step, start) return struct.pack(STEP_HEAD, kind, step, start) end

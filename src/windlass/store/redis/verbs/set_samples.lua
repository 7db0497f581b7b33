-- set_samples: store samples, all or none, each unless one with at least as many observations exists. Request:
-- observations of each. Blobs: place and value of each.
--! scope: global
--! effect: writes
--! uses: stats
for i, observations in ipairs(request) do
  local place, value = ARGV[2 * i + 2], ARGV[2 * i + 3]
  local before = redis.call('HGET', K.samples, place)
  if not before or observations > struct.unpack('>i8', before) then
    redis.call('HSET', K.samples, place, struct.pack('>i8', observations) .. value)
    redis.call('ZADD', K.sample_index, 0, place)
  end
end
return 1

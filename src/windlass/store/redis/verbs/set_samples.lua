-- set_samples: store samples, all or none, each unless one with at least as many observations exists. Request:
-- observations of each. Blobs: field and value of each.
--! scope: global
--! effect: writes
--! uses: stats
for i, observations in ipairs(request) do
  local field, value = ARGV[2 * i + 2], ARGV[2 * i + 3]
  local before = redis.call('HGET', K.samples, field)
  if not before or observations > struct.unpack('>i8', before) then
    redis.call('HSET', K.samples, field, struct.pack('>i8', observations) .. value)
    redis.call('ZADD', K.sample_index, 0, field)
  end
end
return 1

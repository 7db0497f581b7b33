-- set_samples: keep samples, all of them or none, each unless one that says as much is there: what is made again from
-- fewer parts is not the truth.
-- of the office
-- The request is how much each says. Blobs: place and value of each.
-- uses: office, sample
local problem = strange()
if problem then return problem end
for i, says in ipairs(request) do
  local place, value = ARGV[2 * i + 2], ARGV[2 * i + 3]
  local before = redis.call('HGET', K.samples, place)
  if not before or says > struct.unpack('>i8', before) then
    redis.call('HSET', K.samples, place, struct.pack('>i8', says) .. value)
    redis.call('ZADD', K.steps, 0, place)
  end
end
return 1

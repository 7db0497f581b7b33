-- more: reason, error and ended attempts of a job, as More in record.py packs them. What is not there is nil, by name.
-- uses: record
-- keys: more
local function read_more(id, r)
  if not has(r.flags, MORE) then return {} end
  local kept = cmsgpack.unpack(redis.call('HGET', K.more, id) or '\144')
  return {reason = kept[1], error = kept[2], attempts = kept[3]}
end

-- By hand: a table with holes would become a map.
local function packed(value) return value and cmsgpack.pack(value) or '\192' end

-- Sets the flag too: write the record after it.
local function write_more(id, r, more)
  if more.reason or more.error or more.attempts then
    redis.call('HSET', K.more, id, '\147' .. packed(more.reason) .. packed(more.error) .. packed(more.attempts))
    r.flags = bit.bor(r.flags, MORE)
  elseif has(r.flags, MORE) then
    redis.call('HDEL', K.more, id)
    r.flags = r.flags - MORE
  end
end

-- details: reason, error and ended attempts of a job, packed as Details in record.py; missing ones are nil.
--! uses: record
local function read_details(id, r)
  if not has(r.flags, HAS_DETAILS) then return {} end
  local kept = cmsgpack.unpack(redis.call('HGET', K.details, id) or '\144')
  return {reason = kept[1], error = kept[2], attempts = kept[3]}
end

-- Values are packed one by one: cmsgpack would pack a table with holes as a map.
local function packed(value) return value and cmsgpack.pack(value) or '\192' end

-- Write details, and set or remove the flag in `r`: the caller writes the record afterwards.
local function write_details(id, r, details)
  if details.reason or details.error or details.attempts then
    redis.call('HSET', K.details, id, '\147' .. packed(details.reason) .. packed(details.error) .. packed(details.attempts))
    r.flags = bit.bor(r.flags, HAS_DETAILS)
  elseif has(r.flags, HAS_DETAILS) then
    redis.call('HDEL', K.details, id)
    r.flags = r.flags - HAS_DETAILS
  end
end

-- Remove the reason. The caller writes the record afterwards.
local function clear_reason(id, r)
  if not has(r.flags, HAS_DETAILS) then return end
  local details = read_details(id, r)
  details.reason = nil
  write_details(id, r, details)
end

-- more: reason, error and ended attempts of a job that has any. It is written piece by piece: cmsgpack keeps no hole.
-- uses: record
-- keys: more
local REASON, ERROR, ATTEMPTS = 1, 2, 3

local function more_of(id, r)
  local value = has(r.flags, MORE) and redis.call('HGET', K.more, id)
  return value and cmsgpack.unpack(value) or {}
end

-- Why a job is as it is; nil takes the reason away. The record is to be written after that: it says if there is any.
local function set_reason(id, r, reason)
  local more = more_of(id, r)
  if more[REASON] == reason then return end
  if not (reason or more[ERROR] or more[ATTEMPTS]) then
    redis.call('HDEL', K.more, id)
    if has(r.flags, MORE) then r.flags = r.flags - MORE end
    return
  end
  redis.call('HSET', K.more, id,
    '\147' .. cmsgpack.pack(reason) .. cmsgpack.pack(more[ERROR]) .. cmsgpack.pack(more[ATTEMPTS]))
  r.flags = bit.bor(r.flags, MORE)
end

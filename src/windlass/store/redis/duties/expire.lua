-- expire: cancel waiting jobs that have expired, the longest expired first. Request: the maximum (0: only look).
-- Reply: how many were cancelled, how long until the next one expires (nothing: none), and the ids of those cancelled.
--! effect: writes
--! uses: replace_record
local now = now_micros()
local MAX_COUNT, MAX_TEXT = 100, 1000000
local dirty_keys, cancelled, text = {}, {}, 0

if request > 0 then
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', K.expiring, '-inf', now, 'LIMIT', 0, math.min(request, MAX_COUNT))) do
    if text > MAX_TEXT then break end
    local r, value = read_job(id)
    text = text + #(value or '')
    if r and waiting_letters[r.letter] then
      cancel_waiting(id, r, 'expired', now, dirty_keys)
      cancelled[#cancelled + 1] = id
    else
      redis.call('ZREM', K.expiring, id)
    end
  end
  assign_key_slots(dirty_keys, now)
end
local first = redis.call('ZRANGE', K.expiring, 0, 0, 'WITHSCORES')
return {#cancelled, first[2] and first[2] - now or false, cancelled}

-- retention: how long a finished job of this queue is kept.
--! uses: record
--! keys: queue
local retention_fields = {[COMPLETED] = 'keep_completed', [CANCELLED] = 'keep_cancelled', [DEAD] = 'keep_dead'}
local retentions = {}
local function retention_of(letter)
  if not retentions[letter] then retentions[letter] = tonumber(redis.call('HGET', K.queue, retention_fields[letter])) end
  return retentions[letter]
end

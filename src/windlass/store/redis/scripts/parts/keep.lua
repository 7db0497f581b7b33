-- keep: how long a job of this queue is kept after it ended.
-- uses: record
-- keys: queue
local kept_for = {[COMPLETED] = 'keep_completed', [CANCELLED] = 'keep_cancelled', [DEAD] = 'keep_dead'}
local keeps = {}
local function keep_of(letter)
  if not keeps[letter] then keeps[letter] = tonumber(redis.call('HGET', K.queue, kept_for[letter])) end
  return keeps[letter]
end

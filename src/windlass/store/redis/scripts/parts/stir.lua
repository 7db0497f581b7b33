-- stir: a job for which others wait has ended, lives again, has moved, or is gone: that is noted in the same call, and
-- `follow` tells them. In `wake` is the letter that it has, and its result if it completed. That it completed is never
-- overwritten: who waited for that goes on, whatever becomes of the job since. The field `g` and the id: it is gone.
-- uses: record, text
-- keys: wake
local MOVED = 109

local function stir_as(id, letter, result)
  local before = redis.call('HGET', K.wake, id)
  if before and string.byte(before) == COMPLETED then return end
  redis.call('HSET', K.wake, id, string.char(letter) .. result)
end

local function stir(id, r) stir_as(id, r.letter, r.letter == COMPLETED and result_of(r) or '') end

local function stir_gone(id) redis.call('HSET', K.wake, 'g' .. id, '') end

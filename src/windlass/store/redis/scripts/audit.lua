-- audit: whether jobs of this queue are where their statuses say, a bounded piece of the way. The request is the id to go
-- on from (empty: the beginning). The answer is the last id that was looked at (empty: there are no more), how many were,
-- and {id, index} of those who are missing from one.
-- uses: call, record, index
-- keys: queue jobs ids ready due rare line slots parked ended
local problem = strange()
if problem then return problem end
local STEP = 250
local from = request[1]
local ids = redis.call('ZRANGEBYLEX', K.ids, from == '' and '-' or '(' .. from, '+', 'LIMIT', 0, STEP)
local lost = {}

local function must_be(id, place, member)
  if not redis.call('ZSCORE', K[place], member) then lost[#lost + 1] = {id, place} end
end

local function check(id, r)
  local letter = r.letter
  if letter == PENDING then
    must_be(id, 'ready', ready_member(id, r))
  elseif letter == SCHEDULED or letter == FAILED or letter == ASIDE then
    must_be(id, 'due', id)
  elseif letter == IN_LINE then
    must_be(id, 'line', line_member(id, r))
  elseif letter == PARKED then
    must_be(id, 'parked', parked_member(id, r))
  elseif finished_letters[letter] then
    must_be(id, 'ended', id)
  elseif letter == RUNNING then
    if redis.call('HEXISTS', K.left, claim_head(r.runner, r.claim)) == 0 then lost[#lost + 1] = {id, 'left'} end
  end
  if letter == FAILED or letter == DEAD or letter == CANCELLED then must_be(id, 'rare', string.char(letter) .. id) end
  if r.slot >= 0 then must_be(id, 'slots', slot_member(id, r)) end
end

for _, id in ipairs(ids) do
  local value = redis.call('HGET', K.jobs, id)
  if value then check(id, read_record(value)) else lost[#lost + 1] = {id, 'jobs'} end
end
return {#ids == STEP and ids[#ids] or '', #ids, lost}

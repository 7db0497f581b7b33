-- audit_jobs: check that jobs are in the indexes of their status, some at a time. Request: the id to continue
-- after (empty: the start). Reply: the last id (empty: the end), how many, and {id, index} of missing entries.
--! effect: reads
--! uses: queue_call, record, indexes
--! keys: queue, jobs, ids, ready, due, by_status, waiting_for_key, slots, parked, drop_times
local problem = check_store()
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
  elseif letter == SCHEDULED or letter == FAILED or letter == THROTTLED then
    must_be(id, 'due', id)
  elseif letter == WAITING_FOR_KEY then
    must_be(id, 'waiting_for_key', waiting_member(id, r))
  elseif letter == PARKED then
    must_be(id, 'parked', parked_member(id, r))
  elseif finished_letters[letter] then
    must_be(id, 'drop_times', id)
  elseif letter == RUNNING then
    if redis.call('HEXISTS', K.claim_counts, claim_head(r.runner, r.claim)) == 0 then lost[#lost + 1] = {id, 'claim_counts'} end
  end
  if letter == FAILED or letter == DEAD or letter == CANCELLED then must_be(id, 'by_status', string.char(letter) .. id) end
  if r.slot >= 0 then must_be(id, 'slots', slot_member(id, r)) end
end

for _, id in ipairs(ids) do
  local value = redis.call('HGET', K.jobs, id)
  if value then check(id, read_record(value)) else lost[#lost + 1] = {id, 'jobs'} end
end
return {#ids == STEP and ids[#ids] or '', #ids, lost}

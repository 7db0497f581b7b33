-- index_entries: all entries of a job in indexes, {index, score, member} of each, for checks and repairs. Scripts that
-- change jobs write them one by one (indexes.lua).
--! uses: record, indexes
local function index_entries(id, r)
  local letter, entries = r.letter, {{'ids', 0, id}}
  local function enter(index, score, member) entries[#entries + 1] = {index, score, member} end
  if letter == PENDING then
    enter('ready', 0, ready_member(id, r))
    if fair() then enter('tenant_queues', 0, tenant_member(id, r)) end
  elseif letter == SCHEDULED or letter == FAILED or letter == THROTTLED then
    enter('due', r.run_at, id)
    if letter == THROTTLED then enter('throttled', 0, throttled_member(id, r)) end
  elseif letter == WAITING_FOR_KEY then
    enter('waiting_for_key', 0, waiting_member(id, r))
  elseif letter == PARKED then
    enter('parked', 0, parked_member(id, r))
  elseif finished_letters[letter] then
    enter('drop_times', r.updated + retention_of(letter), id)
  end
  if letter == FAILED or letter == DEAD or letter == CANCELLED then
    enter('by_status', 0, string.char(letter) .. id)
    if letter ~= CANCELLED then enter('failures', r.updated, id) end
  end
  if r.key_slot >= 0 then enter('key_slots', 0, key_slot_member(id, r)) end
  if r.expires > 0 and waiting_letters[letter] then enter('expiring', r.expires, id) end
  return entries
end

-- parent_changes: record in the same call that a job with dependents has finished, become live again, moved, or been
-- dropped, for `notify_dependents`. The value is its letter, and its result if it completed. A completion is never
-- overwritten: dependents are released, whatever happens to the job afterwards. A field of `g` and the id: the job was
-- dropped.
--! uses: record
local MOVED, WAITING = 109, 'w'

-- Move its only dependent from the record to `dependents`. The caller writes the record.
local function list_only_dependent(id, r)
  if not has(r.flags, ONLY_DEPENDENT) then return end
  r.flags = r.flags - ONLY_DEPENDENT
  redis.call('ZADD', K.dependents, 0, WAITING .. id .. string.sub(r.tail, r.fields_size - 35, r.fields_size))
end

local function note_parent_state(id, letter, result)
  local before = redis.call('HGET', K.parent_changes, id)
  if before and string.byte(before) == COMPLETED then return end
  redis.call('HSET', K.parent_changes, id, string.char(letter) .. result)
end

local function note_parent_change(id, r) note_parent_state(id, r.letter, r.letter == COMPLETED and result_of(r) or '') end

local function note_parent_dropped(id) redis.call('HSET', K.parent_changes, 'g' .. id, '') end

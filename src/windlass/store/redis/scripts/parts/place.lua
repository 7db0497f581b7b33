-- place: a record takes the place of the one that it was made from, with all that follows: its places, its key, and its
-- end if nothing is kept of it. Lines are told (`at_line`); the caller lets them move up at the end. Who waits is told.
-- uses: record, index, keep, hold, bury, line, stir, ends
-- keys: jobs cancels

-- Only who has a slot, had one, or stands in line matters to a line.
local function at_its_line(lines, r)
  if r.slot >= 0 or r.letter == IN_LINE then at_line(lines, r) end
end

-- `more` must have been written: a tombstone tells of the last attempt.
local function put_record(id, before, r, now, lines)
  r.version = before.version + 1
  if before.letter == RUNNING and r.letter == RUNNING then
    redis.call('HSET', K.jobs, id, write_record(r))
    if has(r.flags, CANCELLING) then redis.call('SADD', K.cancels, id) end
    return
  end
  if before.slot ~= r.slot or r.letter == IN_LINE or before.letter == IN_LINE then
    at_its_line(lines, before)
    at_its_line(lines, r)
  end
  leave_places(id, before)
  local over = finished_letters[r.letter]
  if has(r.flags, HEIRS) and over ~= finished_letters[before.letter] then stir(id, r) end
  if over and has(r.flags, KEYED) then release_key(id, r, now) end
  if over and keep_of(r.letter) == 0 then
    forget_all({[id] = r}, now)
  else
    redis.call('HSET', K.jobs, id, write_record(r))
    enter_places(id, r, over and r.updated + keep_of(r.letter))
  end
  if over and awaited() then tell_ends({[id] = true}) end
end

-- calloff: waiting jobs that end without a run: replaced by a newcomer, or expired. The caller has seen that they wait,
-- and lets those in line move up afterwards: `lines` are the lines that were left.
-- uses: record, index, keep, holder, more, bury, line
local function call_off(id, r, reason, now, lines)
  leave_places(id, r)
  at_line(lines, r)
  set_reason(id, r, reason)
  r.letter, r.version, r.updated, r.slot = CANCELLED, r.version + 1, now, -1
  release_key(id, r, now)
  local keep = keep_of(CANCELLED)
  if keep <= 0 then return bury(id, r, now) end
  redis.call('HSET', K.jobs, id, write_record(r))
  enter_places(id, r, now + keep)
end

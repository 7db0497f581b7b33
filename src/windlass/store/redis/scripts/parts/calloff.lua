-- calloff: waiting jobs that end without a run: replaced by a newcomer, or expired. The caller has seen that they wait,
-- and lets those in line move up afterwards: `lines` are the lines that were left.
-- uses: record, more, place
local function call_off(id, r, reason, now, lines)
  local before = {}
  for name, value in pairs(r) do before[name] = value end
  local more = read_more(id, r)
  more.reason = reason
  write_more(id, r, more)
  r.letter, r.updated, r.slot = CANCELLED, now, -1
  put_record(id, before, r, now, lines)
end

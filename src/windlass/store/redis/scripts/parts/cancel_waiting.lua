-- cancel_waiting: waiting jobs that end without a run: replaced, expired, or with a failed parent. The caller has
-- checked that they wait, and assigns the slots of `dirty_keys` afterwards.
--! uses: record, details, replace_record
local function cancel_waiting(id, r, reason, now, dirty_keys)
  local before = {}
  for name, value in pairs(r) do before[name] = value end
  local details = read_details(id, r)
  details.reason = reason
  write_details(id, r, details)
  r.letter, r.updated, r.slot = CANCELLED, now, -1
  replace_record(id, before, r, now, dirty_keys)
end

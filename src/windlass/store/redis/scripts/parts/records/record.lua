-- record: the packed record of a job, as in record.py.
local HEAD_A, A_SIZE = '>BI4I4I4i8i8i8B', 38
local HEAD_B, B_SIZE = '>I4I4i4i8i8i8i8I2I4', 50
local HEAD_C, C_SIZE = '>I2i8i2I2I2I4I2I4I4', 30  -- of records with HAS_HEAD_C
local LEVEL = 32767  -- added to a sort_priority in the member of an index: the highest priority is 0
local PENDING, RUNNING, SCHEDULED, THROTTLED, FAILED = 112, 114, 115, 116, 102
local BLOCKED, WAITING_FOR_KEY, PARKED = 98, 108, 107
local COMPLETED, DEAD, CANCELLED = 99, 100, 120
local HAS_IDEMPOTENCY_KEY, HAS_CONCURRENCY_KEY, STRICT, RATED, COSTLY, HAS_TENANT, IS_CHILD, HAS_DETAILS, HAS_NOTES, CANCEL_REQUESTED = 1, 2, 4, 8, 16, 32, 64, 128, 256, 512
local WAITS_FOR_PARENTS, HAS_DEPENDENTS, HAS_PARENT_RESULTS, ONE_PARENT, TAKES_RESULT, ONLY_DEPENDENT, HAS_HEAD_C, WHEN_ENDED = 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072

local function has(flags, flag) return bit.band(flags, flag) ~= 0 end

-- The record as a table; `tail` is what scripts copy unread. The table is created with all fields: adding them one by
-- one costs three times as much.
local function read_record(value)
  local letter, version, attempt, claim, updated, claimed, started, length = struct.unpack(HEAD_A, value)
  local at = A_SIZE + length
  local flags, type, sort_priority, rank, run_at, created, timeout, max_attempts, fields_size = struct.unpack(HEAD_B, value, at + 1)
  local aged_by, expires, key_slot, failures, crashes, rescues, suspicions, requeues, snoozes = 0, 0, -1, 0, 0, 0, 0, 0, 0
  local ends = at + B_SIZE
  if has(flags, HAS_HEAD_C) then
    aged_by, expires, key_slot, failures, crashes, rescues, suspicions, requeues, snoozes = struct.unpack(HEAD_C, value, ends + 1)
    flags, ends = flags - HAS_HEAD_C, ends + C_SIZE
  end
  return {letter = letter, version = version, attempt = attempt, claim = claim, updated = updated, claimed = claimed,
    started = started, runner = string.sub(value, A_SIZE + 1, at), flags = flags, type = type, sort_priority = sort_priority,
    aged_by = aged_by, rank = rank, run_at = run_at, created = created, expires = expires, timeout = timeout,
    max_attempts = max_attempts, key_slot = key_slot, failures = failures, crashes = crashes, rescues = rescues,
    suspicions = suspicions, requeues = requeues, snoozes = snoozes, fields_size = fields_size,
    tail = string.sub(value, ends + 1), fields = false}
end

-- The record of a job, and its packed value; nil: there is none.
local function read_job(id)
  local value = redis.call('HGET', K.jobs, id)
  return value and read_record(value) or nil, value
end

-- Flags and expiry, which is all that a claim reads of most jobs.
local EXPIRES_AT, KEY_SLOT_AT = 2, 10  -- in head C
local function flags_and_expiry(value)
  local head_b = A_SIZE + string.byte(value, A_SIZE) + 1
  local flags, expires = struct.unpack('>I4', value, head_b), 0
  if has(flags, HAS_HEAD_C) then expires = struct.unpack('>i8', value, head_b + B_SIZE + EXPIRES_AT) end
  return flags, expires
end

-- Head C, which is empty for most jobs.
local function head_c(r)
  if r.key_slot < 0 and r.expires == 0
    and r.aged_by + r.failures + r.crashes + r.rescues + r.suspicions + r.requeues + r.snoozes == 0 then return '' end
  return struct.pack(HEAD_C, r.aged_by, r.expires, r.key_slot, r.failures, r.crashes, r.rescues, r.suspicions, r.requeues, r.snoozes)
end

-- The packed record; the flags of `r` do not have HAS_HEAD_C.
local function write_record(r)
  local more = head_c(r)
  return struct.pack(HEAD_A, r.letter, r.version, r.attempt, r.claim, r.updated, r.claimed, r.started, #r.runner)
    .. r.runner
    .. struct.pack(HEAD_B, more == '' and r.flags or r.flags + HAS_HEAD_C, r.type, r.sort_priority, r.rank, r.run_at, r.created,
      r.timeout, r.max_attempts, r.fields_size)
    .. more .. r.tail
end

-- The fields that are set at the enqueue, by number: see Fields in record.py.
local TYPE, TENANT, KEY, KEY_DIGEST, WINDOW, CONCURRENCY_KEY, CONCURRENCY_DIGEST, KEY_LIMIT, KEY_STRICT, KEY_RATE, RATE_COST, PARENT =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
local PARENTS, RESULT_PARAMS = 14, 19
local function fields_of(r)
  if not r.fields then r.fields = cmsgpack.unpack(string.sub(r.tail, 1, r.fields_size)) end
  return r.fields
end

-- The only dependent of a job with ONLY_DEPENDENT, from the packed record: the last text of the fields. Head B begins
-- at `at`.
local function only_dependent(value, at, flags)
  local ends = at + B_SIZE - 1 + (has(flags, HAS_HEAD_C) and C_SIZE or 0) + struct.unpack('>I4', value, at + B_SIZE - 4)
  return string.sub(value, ends - 35, ends)
end

-- The texts behind the fields of a record: payload, parent results (HAS_PARENT_RESULTS), result.
local function payload_end(r) return r.fields_size + 4 + struct.unpack('>I4', r.tail, r.fields_size + 1) end

-- The results of completed parents, as JSON of [parent, result]; nil: none yet.
local function parent_results_of(r)
  if not has(r.flags, HAS_PARENT_RESULTS) then return nil end
  local at = payload_end(r)
  return string.sub(r.tail, at + 5, at + 4 + struct.unpack('>I4', r.tail, at + 1))
end

local function result_of(r)
  local at = payload_end(r)
  if has(r.flags, HAS_PARENT_RESULTS) then at = at + 4 + struct.unpack('>I4', r.tail, at + 1) end
  return string.sub(r.tail, at + 1)
end

-- Set the parent results of a job without a result.
local function set_parent_results(r, text)
  r.tail = string.sub(r.tail, 1, payload_end(r)) .. struct.pack('>I4', #text) .. text
  r.flags = bit.bor(r.flags, HAS_PARENT_RESULTS)
end

-- A record; nil if it was edited by hand and cannot be read.
local function readable(value)
  local is_read, r = pcall(read_record, value)
  return is_read and pcall(fields_of, r) and r or nil
end

-- lapsed_runners: remove lapsed leases, and list dead runners. The caller puts their jobs back, queue by queue; until
-- that is done, later callers get these runners too, since the first may have died. Request: the maximum, a cursor
-- (nothing: the start), the number of the call. Reply: runners, their registrations, 1 if the caller should call
-- again at once (some leases still lack their grace, or there are more registrations), and the next cursor.
-- While a server of a cluster is unreachable, any number of dead runners may remain: newly lapsed ones come first,
-- the others take turns.
--! scope: global
--! effect: writes
--! uses: runners
local MAX_REMOVED, MAX_REGISTRATIONS = 200, 1000
local now, max_count, cursor, number = now_micros(), request[1], request[2] or '0', request[3] or 0
local runners, registrations, listed = {}, {}, {}

local function lapsed(limit)
  return redis.call('ZRANGEBYSCORE', K.lease_ends, '-inf', string.format('%.0f', now), 'LIMIT', 0, limit)
end

local function is_full() return #runners == max_count or #registrations >= MAX_REGISTRATIONS end

local function add_runner(runner, worker)
  if listed[runner] then return end
  listed[runner] = true
  runners[#runners + 1] = runner
  add_registrations(registrations, worker, runner)
end

-- If no lease has lapsed, this check does not count as activity.
local all_graced = note_lapse_check(#lapsed(1) > 0, now)
for _, runner in ipairs(all_graced and lapsed(math.min(max_count, MAX_REMOVED)) or {}) do
  if not is_full() then
    local worker = read_lease(runner, now).worker
    remove_runner(runner, worker, now)
    add_runner(runner, worker)
  end
end

-- HSCAN returns a small hash as one page, whatever COUNT is: each call starts at another entry of it.
local after, page = unpack(redis.call('HSCAN', K.dead_runners, cursor, 'COUNT', math.min(max_count, MAX_REMOVED)))
local dead_runners = #page / 2
for i = 0, dead_runners - 1 do
  if is_full() then return {runners, registrations, #runners < max_count and 1 or 0, after} end
  local at = 2 * ((i + number * max_count) % dead_runners)
  add_runner(page[at + 1], page[at + 2])
end
return {runners, registrations, all_graced and 0 or 1, after}

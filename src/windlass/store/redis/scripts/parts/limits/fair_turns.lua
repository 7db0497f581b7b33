-- fair_turns: how a claim is shared between tenants with pending jobs, as in core/flow/fairness.py. A state is
-- {present, ends = {tenant = end}}. Weights are by tenant; the default is 1.
--! uses: merged_stream

-- Order by the end of the next job; among equals new tenants first, then by name.
local function ends_before(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  if a[2] ~= b[2] then return a[2] < b[2] end
  return a[5] < b[5]
end

-- The tenants of the next jobs, in order, if all have enough jobs. `by_name` numbers them in the order of names, since
-- comparing names at every step of the heap would be slow.
local function fair_order(state, waiting, weights, jobs, by_name)
  local heap, order = {}, {}
  for tenant in pairs(waiting) do
    local step = 1 / (weights[tenant] or 1)
    local last = state.ends[tenant]
    heap[#heap + 1] = {(last or state.present) + step, last and 1 or 0, tenant, step, by_name[tenant]}
  end
  heapify(heap, ends_before)
  while heap[1] and #order < jobs do
    local first = heap[1]
    order[#order + 1] = first[3]
    first[1], first[2] = first[1] + first[4], 1
    sift_down(heap, 1, ends_before)
  end
  return order
end

-- The state after these tenants got jobs; `waiting` are those that had some. The present is the least of their ends.
local function after_taking(state, taken, weights, waiting)
  local present, farthest, ends = nil, nil, {}
  for tenant in pairs(waiting) do ends[tenant] = state.ends[tenant] or state.present end
  for tenant, jobs in pairs(taken) do
    ends[tenant] = (ends[tenant] or state.ends[tenant] or state.present) + jobs / (weights[tenant] or 1)
  end
  for tenant, moment in pairs(ends) do
    if waiting[tenant] and (not present or moment < present) then present = moment end
    if not farthest or moment > farthest then farthest = moment end
  end
  present = present or farthest or state.present
  local after = {}
  for tenant, moment in pairs(ends) do
    if moment > present then after[tenant] = moment end
  end
  return {present = present, ends = after}
end

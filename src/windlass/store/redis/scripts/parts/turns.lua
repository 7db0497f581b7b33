-- turns: how a claim is shared out between tenants who all have jobs waiting, as core/fairness.py says. A standing is
-- {present, ends = {tenant = end}}. Tenants and weights are tables by name; who has no weight has 1.
-- uses: heap, order

-- By the end of the next job, newcomers first among equals, then by name.
local function ends_before(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  if a[2] ~= b[2] then return a[2] < b[2] end
  return comes_before(a[3], b[3])
end

-- Whose the next jobs are, one after the other, if all of them have enough.
local function turns(standing, waiting, weights, jobs)
  local line, order = {}, {}
  for tenant in pairs(waiting) do
    local step = 1 / (weights[tenant] or 1)
    local last = standing.ends[tenant]
    line[#line + 1] = {(last or standing.present) + step, last and 1 or 0, tenant, step}
  end
  heapify(line, ends_before)
  while line[1] and #order < jobs do
    local first = line[1]
    order[#order + 1] = first[3]
    first[1], first[2] = first[1] + first[4], 1
    sink(line, 1, ends_before)
  end
  return order
end

-- The standing after these tenants got so many jobs; `waiting` are those who had some. The present is where the one of
-- them who is least far stands: nobody can be owed more than that.
local function took(standing, taken, weights, waiting)
  local present, farthest, ends = nil, nil, {}
  for tenant in pairs(waiting) do ends[tenant] = standing.ends[tenant] or standing.present end
  for tenant, jobs in pairs(taken) do
    ends[tenant] = (ends[tenant] or standing.ends[tenant] or standing.present) + jobs / (weights[tenant] or 1)
  end
  for tenant, moment in pairs(ends) do
    if waiting[tenant] and (not present or moment < present) then present = moment end
    if not farthest or moment > farthest then farthest = moment end
  end
  present = present or farthest or standing.present
  local after = {}
  for tenant, moment in pairs(ends) do
    if moment > present then after[tenant] = moment end
  end
  return {present = present, ends = after}
end

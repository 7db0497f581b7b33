-- record_text: the texts behind the fields of a record: payload, parent results (HAS_PARENT_RESULTS), result.
--! uses: record
local function payload_end(r) return r.fields_size + 4 + struct.unpack('>I4', r.tail, r.fields_size + 1) end

-- The results of parents that have come, as JSON of [parent, result]; nil: nothing.
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

-- Of one that has no result yet.
local function set_parent_results(r, text)
  r.tail = string.sub(r.tail, 1, payload_end(r)) .. struct.pack('>I4', #text) .. text
  r.flags = bit.bor(r.flags, HAS_PARENT_RESULTS)
end

-- heap: a binary heap, ordered by a function `before`.
local function sift_down(heap, at, before)
  local entry, size = heap[at], #heap
  while true do
    local child = 2 * at
    if child > size then break end
    if child < size and before(heap[child + 1], heap[child]) then child = child + 1 end
    if not before(heap[child], entry) then break end
    heap[at], at = heap[child], child
  end
  heap[at] = entry
end

local function heapify(heap, before)
  for at = math.floor(#heap / 2), 1, -1 do sift_down(heap, at, before) end
end

-- The first one goes; the last one takes its place, and finds its own.
local function drop_first(heap, before)
  local size = #heap
  heap[1] = heap[size]
  heap[size] = nil
  if size > 2 then sift_down(heap, 1, before) end
end

"""Who gets a slot is worked out on the server as core does it."""

from hypothesis import given
from hypothesis import strategies as st

from tests.redis.lua import run
from windlass.core.flow.key_slots import assign_key_slots

GRANT = """
--! uses: key_queue
--! keys: key_slots
local taken, limits, written = unpack(given, 1, 3)
local line, slots = string.rep('a', 32), {}
local function take(slot) redis.call('ZADD', K.key_slots, 0, line .. struct.pack('>I2', slot) .. 'id') end
redis.call('DEL', K.key_slots)
-- Those of the neighbours count for no other job.
redis.call('ZADD', K.key_slots, 0, string.rep('a', 31) .. '9' .. struct.pack('>I2', 0) .. 'id')
redis.call('ZADD', K.key_slots, 0, string.rep('a', 31) .. 'b' .. struct.pack('>I2', 0) .. 'id')
for _, slot in ipairs(taken) do take(slot) end
local next_key_slot = free_key_slots(line)
for _, limit in ipairs(limits) do
  local slot = next_key_slot(limit)
  if not slot then break end
  if written then
    take(slot)
    next_key_slot = free_key_slots(line)
  end
  slots[#slots + 1] = slot
end
return cmsgpack.pack(slots)
"""

slots = st.one_of(st.integers(0, 12), st.integers(250, 260), st.integers(0, 9_999))
limits = st.one_of(st.none(), st.integers(1, 12), st.integers(1, 10_000))


@given(taken=st.sets(slots, max_size=30), wanted=st.lists(limits, max_size=20), written=st.booleans())
def test_the_lowest_free_key_slots_go_to_the_first_that_wait(
    taken: set[int], wanted: list[int | None], written: bool
) -> None:
    """Whether those that were given are written one by one, or all of them later."""
    given_out = run(GRANT, sorted(taken), [limit or False for limit in wanted], written)
    assert given_out == assign_key_slots(taken, wanted)

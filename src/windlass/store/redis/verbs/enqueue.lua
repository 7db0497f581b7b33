-- enqueue: store new jobs, all or none; known ids and key conflicts return the existing job. Request: an enqueue
-- batch; ARGV[4] and on: its blobs. Reply: {0, kind, number, id, …} of existing jobs, and {…, 0, 0, id, …} of jobs
-- that must register with their parents; {1}: the queue is closed; {2, kind, number, id}: refused, because that
-- job has the key; {4}: another job has the key of a parent in this batch, and its children must wait for that
-- one.
--! effect: grows
--! uses: store_jobs
--! lazy: resolve_key_conflicts, is_parent_key_taken, transfer_keys, any_new, try_key_slot, assign_key_slots, tenant_member, link_parents, add_children
local now = now_micros()
local known, found, refusal = check_batch(request, now, false)
if refusal then return refusal end
local blobs = {}
for i = 4, #ARGV do blobs[i - 3] = ARGV[i] end
local to_register, parents_changed = store_jobs(request, blobs, now, now, known, found)
return answer_of(request, known, found, to_register, parents_changed)

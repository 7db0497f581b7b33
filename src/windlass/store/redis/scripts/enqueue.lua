-- enqueue: store new jobs, all of them or none; a known id, or a key that another has, answers with the job that stands.
-- The request is an intake; ARGV[4] and on are its blobs. Answers {0, kind, number, id, …} with those that stood before, and
-- {…, 0, 0, id, …} with those that must ask for their parents;
-- or {1}: the queue is closed; or {2, kind, number, id}: one wants to be refused, because that job has its key; or {4}: one
-- has the key of a job that others of these wait for, and they must be handed in as waiting for that one.
-- takes jobs in
-- uses: call, store
-- rarely: contest is_overtaken pass_keys_on any_new seat move_up lane_member link_all add_children
-- keys: queue
local problem = strange()
if problem then return problem end
local now = the_time()
local known, found, refusal = judge(request, now, false)
if refusal then return refusal end
local blobs = {}
for i = 4, #ARGV do blobs[i - 3] = ARGV[i] end
local asking, stirred = store(request, blobs, now, now, known, found)
return answer_of(request, known, found, asking, stirred)

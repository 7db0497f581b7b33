-- counts: number of jobs by status letter: letter and number alternately.
--! effect: reads
return redis.call('HGETALL', K.counts)

// What `windlass check-worker` asks of the worker in JavaScript: windlass check-worker -- node check.mjs
import { setTimeout as sleep } from 'node:timers/promises'
import { Snooze, Worker } from './worker.mjs'

const worker = new Worker({
  server: process.env.WINDLASS_SERVER,
  token: process.env.WINDLASS_TOKEN,
  queues: process.env.QUEUES.split(','),
  handlers: {
    'check.echo': async ({ value }) => value,
    'check.fail': async ({ message }) => { throw new RangeError(message) },
    'check.slow': async ({ seconds }, { signal }) => { await sleep(seconds * 1000, null, { signal }); return 'done' },
    'check.progress': async (_payload, { log, progress }) => { progress(1, 2); log('half'); await sleep(1500) },
    'check.snooze': async (_payload, { job }) => { if (job.attempt === 1) throw new Snooze(0.1) }
  }
})
process.on('SIGTERM', () => worker.stop())
await worker.run()

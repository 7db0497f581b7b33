// A Windlass worker in JavaScript. Node 18 or later; nothing to install.
//
//   WINDLASS_SERVER=https://jobs.example.net WINDLASS_TOKEN=wl_… node worker.mjs
//
// The token needs the scope `work`. Handlers are below; everything above them can be copied as it is.

import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

const MAX_LINES = 200
const MAX_LINE = 1000
const MAX_TIMER = 2 ** 31 - 1 // milliseconds; a longer timer would end at once
const CALL_SECONDS = 10

class LeaseLost extends Error {}

/** Thrown by a handler: try again after some seconds, without counting a failure. */
export class Snooze extends Error {
  constructor (seconds) { super(`again in ${seconds} s`); this.seconds = seconds }
}

export class Worker {
  constructor ({ server, token, queues, handlers, slots = 10 }) {
    Object.assign(this, { server, token, queues, handlers, slots })
    this.running = new Map() // 'id attempt' -> { job, abort, lines, progress }
    this.settlements = []
    this.stopping = false
    this.begin()
  }

  /** A lease that is lost never comes back: go on under a new id. */
  begin () {
    this.id = randomUUID()
    this.claim = 0
    for (const { abort } of this.running.values()) abort.abort(new LeaseLost())
    this.running.clear()
    this.settlements = []
  }

  async run () {
    const beating = this.beat()
    const settling = this.settle()
    while (!this.stopping) {
      const free = this.slots - this.running.size
      if (free <= 0) { await sleep(5); continue }
      const jobs = await this.claimJobs(Math.min(free, 100), this.running.size ? 1 : 20)
      for (const job of jobs) this.start(job)
    }
    while (this.running.size || this.settlements.length) await sleep(5)
    this.done = true
    await Promise.all([beating, settling])
    await this.post('/claims/end', { worker: this.id }).catch(() => {})
  }

  /** Claim nothing more; what runs comes to its end. */
  stop () { this.stopping = true }

  /** The number of a claim is used again until its answer has come, so that no job is lost with an answer. */
  async claimJobs (limit, wait) {
    const body = {
      worker: this.id, claim: ++this.claim, queues: this.queues, types: Object.keys(this.handlers),
      limit, wait, slots: this.slots, host: hostname()
    }
    const answer = await this.persist('/claims', body)
    return answer ? answer.jobs : []
  }

  start (job) {
    const attempt = { job, abort: new AbortController(), lines: [], progress: null }
    this.running.set(`${job.id} ${job.attempt}`, attempt)
    const worker = this.id
    this.perform(attempt).then(async (outcome) => {
      // Before the settlement: notes of an attempt that is over are not kept.
      while (worker === this.id && hasNews(attempt)) await this.sendBeat([attempt])
      if (worker !== this.id) return // the job is another worker's now
      this.settlements.push({ id: job.id, attempt: job.attempt, ...outcome })
    })
  }

  async perform ({ job, abort, lines }) {
    const timer = job.timeout && setTimeout(() => abort.abort(new Error(`longer than ${job.timeout} s`)), Math.min(job.timeout * 1000, MAX_TIMER))
    const context = { job, signal: abort.signal, log: (text) => lines.push(String(text).slice(0, MAX_LINE)), progress: (done, total) => this.progress(job, done, total) }
    try {
      const stopped = new Promise((_resolve, reject) => {
        abort.signal.addEventListener('abort', () => reject(abort.signal.reason), { once: true })
      })
      const result = await Promise.race([this.handlers[job.type](job.payload, context), stopped])
      // Here, so that a result that is not JSON fails its own attempt, and holds up no others.
      return { outcome: 'completed', result: JSON.parse(JSON.stringify(result) ?? 'null') }
    } catch (error) {
      if (error === CANCELLED) return { outcome: 'cancelled' }
      if (error instanceof Snooze) return { outcome: 'snoozed', after: error.seconds }
      const { name = 'Error', message = String(error), stack } = error ?? {}
      return { outcome: 'failed', error: { type: String(name), message: String(message), traceback: String(stack ?? '') } }
    } finally {
      clearTimeout(timer)
    }
  }

  progress (job, done, total) {
    const attempt = this.running.get(`${job.id} ${job.attempt}`)
    if (attempt) attempt.progress = { done, total }
  }

  /** Send outcomes in batches, again and again until they are answered. */
  async settle () {
    while (!this.done) {
      if (!this.settlements.length) { await sleep(2); continue }
      const batch = this.settlements.slice(0, 1000)
      const answer = await this.persist('/claims/settle', { worker: this.id, settlements: batch })
      if (!answer) continue
      for (const { id, attempt, answer: said, problem } of answer.settlements) {
        if (said === 'invalid') {
          console.error(`${id}: ${problem}`)
          this.settlements.push({ id, attempt, outcome: 'failed', error: { type: 'Error', message: problem } })
        } else {
          this.running.delete(`${id} ${attempt}`)
        }
      }
      this.settlements.splice(0, batch.length)
    }
  }

  /** Renew the lease of all jobs, send their news, and cancel what is to be cancelled. */
  async beat () {
    let after = 1
    while (!this.done) {
      await sleep(Math.min(after, 1) * 1000)
      if (!this.running.size) continue
      after = await this.sendBeat([...this.running.values()]) ?? after
    }
  }

  /** Beat, with the news of these attempts; seconds until the next one. */
  async sendBeat (attempts) {
    const notes = attempts.filter(hasNews).map((attempt) => {
      const { job, lines, progress } = attempt
      attempt.progress = null
      return { id: job.id, attempt: job.attempt, ...progress, lines: lines.splice(0, MAX_LINES) }
    })
    const answer = await this.persist('/claims/beat', { worker: this.id, notes })
    for (const { id, attempt } of answer?.cancels ?? []) this.running.get(`${id} ${attempt}`)?.abort.abort(CANCELLED)
    return answer?.beat_after
  }

  /** The answer, asked for until it comes. Without a lease there is none: the worker goes on under a new id. */
  async persist (path, body) {
    for (let pause = 0.1; ; pause = Math.min(pause * 2, 1)) { // well below a lease
      if (body.worker !== this.id) return null
      try {
        const answer = await this.post(path, body)
        return body.worker === this.id ? answer : null // the lease may have been lost meanwhile
      } catch (error) {
        if (error instanceof LeaseLost) { if (body.worker === this.id) this.begin(); return null }
        if (error.fatal) throw error
        await sleep(pause * 1000)
      }
    }
  }

  async post (path, body) {
    const answer = await fetch(`${this.server}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body, (_name, value) => typeof value === 'string' ? wellFormed(value) : value),
      signal: AbortSignal.timeout(((body.wait ?? 0) + CALL_SECONDS) * 1000)
    })
    if (answer.status === 204) return {}
    const said = await answer.json()
    if (answer.ok) return said
    if (said.code === 'lease_lost') throw new LeaseLost()
    const error = new Error(`${answer.status} ${said.code}: ${said.title}`)
    error.fatal = answer.status < 500 && answer.status !== 429
    throw error
  }
}

const CANCELLED = new Error('cancelled')

function hasNews ({ lines, progress }) { return lines.length > 0 || progress !== null }

/** Half of a character, as from a text that was cut, is no Unicode: the server would refuse the whole call. */
function wellFormed (text) { return text.toWellFormed?.() ?? text }

// What this worker can do. A handler gets the payload and a context: job, signal, log(), progress().
const handlers = {
  'mail.welcome': async ({ user_id: user }, { log }) => {
    log(`a mail to user ${user}`)
    return { sent: user }
  }
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const worker = new Worker({
    server: process.env.WINDLASS_SERVER ?? 'http://127.0.0.1:8000',
    token: process.env.WINDLASS_TOKEN,
    queues: (process.env.QUEUES ?? 'default').split(','),
    handlers,
    slots: Number(process.env.SLOTS ?? 10)
  })
  for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => worker.stop())
  await worker.run()
}

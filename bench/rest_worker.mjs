// Drains no-ops over REST: WINDLASS_SERVER, WINDLASS_TOKEN; ends when a claim brings nothing.
//
// Each line claims batches of 100, and settles one with the call that claims the next.
import http from 'node:http'

const { WINDLASS_SERVER: server, WINDLASS_TOKEN: token, LINES: lines } = process.env
const agent = new http.Agent({ keepAlive: true, maxSockets: 16 })

function post (path, body) {
  const text = JSON.stringify(body)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
  return new Promise((resolve, reject) => {
    const request = http.request(`${server}/api/v1${path}`, { method: 'POST', agent, headers }, (answer) => {
      const parts = []
      answer.on('data', (part) => parts.push(part))
      answer.on('end', () => {
        const said = parts.length ? JSON.parse(Buffer.concat(parts)) : null
        if (answer.statusCode < 300) resolve(said)
        else reject(new Error(`${answer.statusCode} ${said.title}`))
      })
    })
    request.on('error', reject)
    request.end(text)
  })
}

async function drain (worker) {
  const claim = (number) => ({ worker, claim: number, queues: ['default'], types: ['noop'], limit: 100, slots: 100 })
  let { jobs } = await post('/claims', claim(1))
  for (let number = 2; jobs.length; number++) {
    const settlements = jobs.map(({ id, attempt }) => ({ id, attempt, outcome: 'completed', result: null }))
    const answer = await post('/claims/settle', { worker, settlements, claim: claim(number) })
    if (answer.settlements.some((each) => each.answer !== 'settled')) throw new Error('not settled')
    jobs = answer.claimed.jobs
  }
  await post('/claims/end', { worker })
}

await Promise.all(Array.from({ length: Number(lines ?? 2) }, (_, n) => drain(`bench-${process.pid}-${n}`)))
agent.destroy()

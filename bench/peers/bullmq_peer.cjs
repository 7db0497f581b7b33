// BullMQ on Node: one worker with a concurrency of 100; finished jobs are kept, as by default.
const fs = require("fs");
const path = require("path");
const { Redis } = require("ioredis");
const { FlowProducer, Queue, Worker } = require("bullmq");
const { version } = require("bullmq/package.json");

const [verb, folder, count] = process.argv.slice(2);
const jobs = Number(count || 0);
const payload = { n: 1, s: "x".repeat(64) };
const CHUNK = 5000;
const connect = () => new Redis(process.env.BENCH_STORE, { maxRetriesPerRequest: null });

const now = () => Number(process.hrtime.bigint()) / 1e9;
const rest = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
const say = (seconds) => console.log(JSON.stringify({ version, jobs, seconds }));

// The pauses of every producer are between 50 and 150 ms, or at a rate what is left until the job's moment.
const rate = Number(process.env.BENCH_RATE || 0);
const begin = Number(process.env.BENCH_BEGIN || 0);
const pause = (i) => rest(rate ? Math.max(0, begin + i / rate - now()) : 0.05 + 0.1 * Math.random());

const verbs = {
  async fill(queue) {
    const began = now();
    for (let i = 0; i < jobs; i++) await queue.add("noop", payload);
    say(now() - began);
  },
  async bulk(queue) {
    const began = now();
    for (let start = 0; start < jobs; start += CHUNK) {
      const size = Math.min(CHUNK, jobs - start);
      await queue.addBulk(Array.from({ length: size }, () => ({ name: "noop", data: payload })));
    }
    say(now() - began);
  },
  // One flow: a parent that waits for all of its children.
  async group() {
    const began = now();
    const child = { name: "noop", queueName: "bench", data: payload };
    const flow = new FlowProducer({ connection: connect() });
    await flow.add({ name: "end", queueName: "bench", children: Array.from({ length: jobs }, () => child) });
    say(now() - began);
  },
  // From the first start of a child until the parent starts.
  async drain_group() {
    let began = 0;
    await new Promise((resolve) => {
      const run = async (job) => {
        if (!began) began = now();
        if (job.name === "end") resolve();
      };
      new Worker("bench", run, { connection: connect(), concurrency: 100 });
    });
    say(now() - began);
  },
  // From the first start until as many are completed, as it counts them.
  async drain(queue) {
    let done = 0;
    let began = 0;
    const noop = async () => {
      if (done++ === 0) began = now();
    };
    new Worker("bench", noop, { connection: connect(), concurrency: 100 });
    const left = async () => (await queue.getCompletedCount()) < jobs;
    while (done < jobs || (await left())) await rest(done < jobs ? 0.05 : 0.005);
    say(now() - began);
  },
  async serve() {
    const stamp = async (job) => {
      const started = process.hrtime.bigint();
      fs.appendFileSync(path.join(folder, "stamps"), `${job.data.sent} ${started}\n`);
    };
    new Worker("bench", stamp, { connection: connect(), concurrency: 100 });
    await new Promise(() => {});
  },
  async produce(queue) {
    if (rate) await queue.add("stamp", { sent: "0" });
    for (let i = 0; i < jobs; i++) {
      await pause(i);
      await queue.add("stamp", { sent: String(process.hrtime.bigint()) });
    }
    say(0);
  },
};

async function main() {
  await verbs[verb](new Queue("bench", { connection: connect() }));
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

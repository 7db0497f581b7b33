// graphile-worker on Node: localQueue 2,000, 24 jobs at once, completions in batches without delay. No history.
const fs = require("fs");
const path = require("path");
const { Pool } = require("pg");
const { Logger, makeWorkerUtils, run } = require("graphile-worker");
const { version } = require("graphile-worker/package.json");

const [verb, folder, count] = process.argv.slice(2);
const jobs = Number(count || 0);
const connectionString = process.env.BENCH_STORE;
const payload = { n: 1, s: "x".repeat(64) };
const CHUNK = 5000;
const silent = new Logger(() => () => {});
const preset = {
  worker: {
    connectionString,
    concurrentJobs: 24,
    maxPoolSize: 26,
    localQueue: { size: 2000 },
    completeJobBatchDelay: 0,
    logger: silent,
  },
};

const now = () => Number(process.hrtime.bigint()) / 1e9;
const rest = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
const say = (seconds) => console.log(JSON.stringify({ version, jobs, seconds }));

// The pauses of every producer are between 50 and 150 ms, or at a rate what is left until the job's moment.
const rate = Number(process.env.BENCH_RATE || 0);
const begin = Number(process.env.BENCH_BEGIN || 0);
const pause = (i) => rest(rate ? Math.max(0, begin + i / rate - now()) : 0.05 + 0.1 * Math.random());

const verbs = {
  async fill(utils) {
    const began = now();
    for (let i = 0; i < jobs; i++) await utils.addJob("noop", payload);
    say(now() - began);
  },
  async bulk(utils) {
    const began = now();
    for (let start = 0; start < jobs; start += CHUNK) {
      const size = Math.min(CHUNK, jobs - start);
      await utils.addJobs(Array.from({ length: size }, () => ({ identifier: "noop", payload })));
    }
    say(now() - began);
  },
  // From the first start until its table is empty: it deletes what is completed.
  async drain() {
    let done = 0;
    let began = 0;
    const noop = async () => {
      if (done++ === 0) began = now();
    };
    await run({ preset, taskList: { noop }, noHandleSignals: true });
    const pool = new Pool({ connectionString, max: 1 });
    const left = async () => (await pool.query("SELECT FROM graphile_worker._private_jobs LIMIT 1")).rowCount;
    while (done < jobs || (await left())) await rest(done < jobs ? 0.05 : 0.005);
    say(now() - began);
  },
  async serve() {
    const stamp = async ({ sent }) => {
      const started = process.hrtime.bigint();
      fs.appendFileSync(path.join(folder, "stamps"), `${sent} ${started}\n`);
    };
    const runner = await run({ preset, taskList: { stamp }, noHandleSignals: true });
    await runner.promise;
  },
  async produce(utils) {
    if (rate) await utils.addJob("stamp", { sent: "0" });
    for (let i = 0; i < jobs; i++) {
      await pause(i);
      await utils.addJob("stamp", { sent: String(process.hrtime.bigint()) });
    }
    say(0);
  },
};

async function main() {
  const utils = await makeWorkerUtils({ connectionString, logger: silent });
  await utils.migrate();
  await verbs[verb](utils);
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

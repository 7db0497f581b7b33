//! The worker: it can be copied as it is. Handlers are in main.rs.

use crate::http::Server;
use crate::json::{float, number, object, text, Json};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{scope, sleep, spawn};
use std::time::{Duration, Instant};

/// Log lines in one note, and letters in one line: more is refused or cut by the server.
const MAX_LINES: usize = 200;
const MAX_LINE: usize = 1000;

/// Why a handler did not return a result.
pub enum Failure {
    Failed(String, String),
    /// Try again after these seconds; no failure is counted.
    Snooze(f64),
    Cancelled,
}

pub type Handler = fn(&Json, &Context) -> Result<Json, Failure>;

/// What a handler may ask and tell.
pub struct Context {
    pub job: Json,
    cancelled: AtomicBool,
    deadline: Option<Instant>,
    progress: Mutex<Option<(f64, f64)>>,
    lines: Mutex<Vec<String>>,
}

impl Context {
    /// A long handler calls this often, with `?`: a thread cannot be ended from outside.
    pub fn check(&self) -> Result<(), Failure> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Failure::Cancelled);
        }
        match self.deadline {
            Some(end) if Instant::now() > end => Err(Failure::Failed("Timeout".into(), "longer than its timeout".into())),
            _ => Ok(()),
        }
    }

    pub fn progress(&self, done: f64, total: f64) {
        *self.progress.lock().unwrap() = Some((done, total));
    }

    pub fn log(&self, line: &str) {
        self.lines.lock().unwrap().push(line.chars().take(MAX_LINE).collect());
    }

    fn has_news(&self) -> bool {
        !self.lines.lock().unwrap().is_empty() || self.progress.lock().unwrap().is_some()
    }
}

type Key = (String, String);

#[derive(Default)]
struct State {
    id: String,
    claim: u64,
    /// By id and attempt.
    running: HashMap<Key, Arc<Context>>,
    settlements: Vec<Json>,
}

pub struct Worker {
    pub server: Server,
    pub queues: Vec<String>,
    pub handlers: HashMap<&'static str, Handler>,
    pub slots: usize,
    state: Mutex<State>,
    is_done: AtomicBool,
}

impl Worker {
    pub fn new(server: Server, queues: Vec<String>, handlers: HashMap<&'static str, Handler>, slots: usize) -> Arc<Worker> {
        let state = Mutex::new(State { id: new_id(), ..State::default() });
        Arc::new(Worker { server, queues, handlers, slots, state, is_done: AtomicBool::new(false) })
    }

    /// Until `stopping`; then what runs comes to its end.
    pub fn run(self: &Arc<Worker>, stopping: &AtomicBool) {
        scope(|threads| {
            threads.spawn(|| self.beat());
            threads.spawn(|| self.settle());
            while !stopping.load(Ordering::Relaxed) {
                self.claim_and_start();
            }
            while !self.is_idle() {
                sleep(Duration::from_millis(5));
            }
            self.is_done.store(true, Ordering::Relaxed);
        });
        let id = self.state.lock().unwrap().id.clone();
        let _ = self.server.post("/claims/end", &object([("worker", text(id))]));
    }

    fn is_current(&self, worker: &str) -> bool {
        self.state.lock().unwrap().id == worker
    }

    fn is_idle(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.running.is_empty() && state.settlements.is_empty()
    }

    fn claim_and_start(self: &Arc<Worker>) {
        let mut state = self.state.lock().unwrap();
        let free = self.slots - state.running.len().min(self.slots);
        if free == 0 {
            drop(state);
            return sleep(Duration::from_millis(5));
        }
        // The number is used again until its answer has come, so that no job is lost with an answer.
        state.claim += 1;
        let body = object([
            ("worker", text(&state.id)),
            ("claim", number(state.claim)),
            ("queues", Json::List(self.queues.iter().map(text).collect())),
            ("types", Json::List(self.handlers.keys().map(|name| text(*name)).collect())),
            ("limit", number(free.min(100))),
            ("wait", number(if state.running.is_empty() { 10 } else { 1 })),
            ("slots", number(self.slots)),
        ]);
        drop(state);
        if let Some(answer) = self.persist("/claims", &body) {
            for job in answer.get("jobs").items() {
                self.start(job, body.get("worker").as_str());
            }
        }
    }

    fn start(self: &Arc<Worker>, job: &Json, worker: &str) {
        let mut state = self.state.lock().unwrap();
        if state.id != worker {
            return; // the lease was lost meanwhile, and the jobs with it
        }
        let timeout = job.get("timeout").as_f64().map(Duration::from_secs_f64);
        let context = Arc::new(Context {
            job: job.clone(),
            cancelled: AtomicBool::new(false),
            deadline: timeout.map(|length| Instant::now() + length),
            progress: Mutex::default(),
            lines: Mutex::default(),
        });
        state.running.insert(key(job), context.clone());
        let (this, worker) = (self.clone(), worker.to_string());
        spawn(move || {
            let settlement = this.perform(&context);
            while this.is_current(&worker) && context.has_news() {
                this.send_notes(&worker, vec![context.clone()]); // notes of an attempt that is settled are not kept
            }
            let mut state = this.state.lock().unwrap();
            if state.id == worker {
                state.settlements.push(settlement);
            }
        });
    }

    fn perform(&self, context: &Context) -> Json {
        let (job, handler) = (&context.job, self.handlers[context.job.get("type").as_str()]);
        let outcome = catch_unwind(AssertUnwindSafe(|| handler(job.get("payload"), context)))
            .unwrap_or_else(|_| Err(Failure::Failed("Panic".into(), "the handler panicked".into())));
        let (name, more) = match outcome {
            Ok(result) => ("completed", ("result", result)),
            Err(Failure::Snooze(seconds)) => ("snoozed", ("after", float(seconds))),
            Err(Failure::Cancelled) => ("cancelled", ("reason", Json::Null)),
            Err(Failure::Failed(kind, message)) => {
                ("failed", ("error", object([("type", text(kind)), ("message", text(message))])))
            }
        };
        object([("id", job.get("id").clone()), ("attempt", job.get("attempt").clone()), ("outcome", text(name)), more])
    }

    /// Send outcomes in batches, again and again until they are answered.
    fn settle(&self) {
        while !self.is_done.load(Ordering::Relaxed) {
            let state = self.state.lock().unwrap();
            let batch: Vec<Json> = state.settlements.iter().take(1000).cloned().collect();
            let body = object([("worker", text(&state.id)), ("settlements", Json::List(batch.clone()))]);
            drop(state);
            if batch.is_empty() {
                sleep(Duration::from_millis(2));
            } else if let Some(answer) = self.persist("/claims/settle", &body) {
                self.settled(body.get("worker").as_str(), batch.len(), answer.get("settlements").items());
            }
        }
    }

    fn settled(&self, worker: &str, count: usize, answers: &[Json]) {
        let mut state = self.state.lock().unwrap();
        if state.id != worker {
            return;
        }
        state.settlements.drain(..count);
        for answer in answers {
            // `settled`, `already` and `stale` are the end of an attempt. What is `invalid` has failed.
            if answer.get("answer").as_str() == "invalid" {
                let error = object([("type", text("Invalid")), ("message", answer.get("problem").clone())]);
                let (id, attempt) = (answer.get("id").clone(), answer.get("attempt").clone());
                let failed = object([("id", id), ("attempt", attempt), ("outcome", text("failed")), ("error", error)]);
                state.settlements.push(failed);
            } else {
                state.running.remove(&key(answer));
            }
        }
    }

    /// Renew the lease of all jobs, send their news, and cancel what is to be cancelled.
    fn beat(&self) {
        let mut next = Instant::now();
        while !self.is_done.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(20));
            if Instant::now() < next {
                continue;
            }
            let state = self.state.lock().unwrap();
            let (worker, running): (String, Vec<_>) = (state.id.clone(), state.running.values().cloned().collect());
            drop(state);
            let after = if running.is_empty() { 0.2 } else { self.send_notes(&worker, running) };
            next = Instant::now() + Duration::from_secs_f64(after);
        }
    }

    /// Beat, with the news of attempts under this id; seconds until the next one.
    fn send_notes(&self, worker: &str, contexts: Vec<Arc<Context>>) -> f64 {
        let notes = contexts.iter().filter_map(|context| note(context)).collect();
        let Some(answer) = self.persist("/claims/beat", &object([("worker", text(worker)), ("notes", Json::List(notes))]))
        else {
            return 0.2;
        };
        let state = self.state.lock().unwrap();
        for cancel in answer.get("cancels").items() {
            if let Some(context) = state.running.get(&key(cancel)) {
                context.cancelled.store(true, Ordering::Relaxed);
            }
        }
        answer.get("beat_after").as_f64().unwrap_or(1.0).min(1.0)
    }

    /// The answer, asked for until it comes. Without a lease there is none: the worker goes on under a new id.
    fn persist(&self, path: &str, body: &Json) -> Option<Json> {
        let mut pause = 0.1;
        loop {
            if !self.is_current(body.get("worker").as_str()) {
                return None;
            }
            match self.server.post(path, body) {
                Ok((200..=299, answer)) => return Some(answer),
                Ok((409, _)) => {
                    self.begin_anew(body.get("worker").as_str());
                    return None;
                }
                Ok((status, problem)) if (400..500).contains(&status) && status != 429 => {
                    eprintln!("{path}: {status} {}", problem.get("title").as_str());
                    exit(1);
                }
                _ => sleep(Duration::from_secs_f64(pause)),
            }
            pause = f64::min(2.0 * pause, 1.0); // well below a lease
        }
    }

    /// A lease that is lost never comes back. Its jobs are another worker's: stop them, and forget them.
    fn begin_anew(&self, lost: &str) {
        let mut state = self.state.lock().unwrap();
        if state.id == lost {
            for context in state.running.values() {
                context.cancelled.store(true, Ordering::Relaxed);
            }
            *state = State { id: new_id(), ..State::default() };
        }
    }
}

fn key(of: &Json) -> Key {
    (of.get("id").as_str().to_string(), of.get("attempt").to_string())
}

fn note(context: &Context) -> Option<Json> {
    let mut said = context.lines.lock().unwrap();
    let count = said.len().min(MAX_LINES);
    let lines: Vec<Json> = said.drain(..count).map(text).collect();
    let progress = context.progress.lock().unwrap().take();
    if lines.is_empty() && progress.is_none() {
        return None;
    }
    let (done, total) = progress.map_or((Json::Null, Json::Null), |(done, total)| (float(done), float(total)));
    let (id, attempt) = (context.job.get("id").clone(), context.job.get("attempt").clone());
    Some(object([("id", id), ("attempt", attempt), ("done", done), ("total", total), ("lines", Json::List(lines))]))
}

fn new_id() -> String {
    let mut bytes = [0; 16];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).expect("/dev/urandom");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

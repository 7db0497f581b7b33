//! A Windlass worker in Rust, with nothing but the standard library.
//!
//!     WINDLASS_SERVER=http://127.0.0.1:8321 WINDLASS_TOKEN=wl_… cargo run --release
//!
//! The token needs the scope `work`. Handlers are here; everything else can be copied as it is.

mod http;
mod json;
mod worker;

use http::Server;
use json::{object, text, Json};
use std::collections::HashMap;
use std::env::var;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use worker::{Context, Failure, Handler, Worker};

fn welcome(payload: &Json, context: &Context) -> Result<Json, Failure> {
    let user = payload.get("user_id").clone();
    context.log(&format!("a mail to user {user}"));
    Ok(object([("sent", user)]))
}

// What `windlass check-worker` asks of a worker.

fn echo(payload: &Json, _context: &Context) -> Result<Json, Failure> {
    Ok(payload.get("value").clone())
}

fn fail(payload: &Json, _context: &Context) -> Result<Json, Failure> {
    Err(Failure::Failed("Refused".into(), payload.get("message").as_str().into()))
}

fn slow(payload: &Json, context: &Context) -> Result<Json, Failure> {
    let end = Instant::now() + Duration::from_secs_f64(payload.get("seconds").as_f64().unwrap_or(0.0));
    while Instant::now() < end {
        context.check()?;
        sleep(Duration::from_millis(20));
    }
    Ok(text("done"))
}

fn progress(_payload: &Json, context: &Context) -> Result<Json, Failure> {
    context.progress(1.0, 2.0);
    context.log("half");
    Ok(Json::Null)
}

fn snooze(_payload: &Json, context: &Context) -> Result<Json, Failure> {
    if context.job.get("attempt").as_f64() == Some(1.0) { Err(Failure::Snooze(0.1)) } else { Ok(Json::Null) }
}

static STOPPING: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_signal: i32) {
    STOPPING.store(true, Ordering::Relaxed);
}

extern "C" {
    // The standard library has no signals, but the C library that it uses has.
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
}

fn main() {
    for number in [2, 15] {
        unsafe { signal(number, stop) };
    }
    let server = var("WINDLASS_SERVER").unwrap_or("http://127.0.0.1:8321".into());
    let token = var("WINDLASS_TOKEN").expect("WINDLASS_TOKEN is not set");
    let queues = var("QUEUES").unwrap_or("default".into()).split(',').map(String::from).collect();
    let handlers: HashMap<&'static str, Handler> = HashMap::from([
        ("mail.welcome", welcome as Handler),
        ("check.echo", echo),
        ("check.fail", fail),
        ("check.slow", slow),
        ("check.progress", progress),
        ("check.snooze", snooze),
    ]);
    Worker::new(Server::new(&server, token), queues, handlers, 10).run(&STOPPING);
}

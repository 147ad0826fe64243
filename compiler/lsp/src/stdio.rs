//! Messages between the server and a client over two streams of bytes.
//!
//! One thread reads, so that the server sees what waits: requests that were cancelled meanwhile are not computed. One
//! analyses texts, and stops between two kernels when the text has changed. So the conversation goes on whatever is
//! being analysed: requests about names are answered at once, those about what an analysis finds when it is there
//! ([`Pace`]), and those that take long in threads of their own. A message that is no JSON or no message gets the
//! protocol's error, and the server goes on.

use super::work::{AnalysisJob, Done};
use super::{Failure, Message, Pace, Reply, Server};
use ptoc_base_protocol::{Malformed, MessageReader, write};
use serde_json::{Value, json};
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What the reader has read.
enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// An answer to a question of the server's, which needs none.
    Response,
    /// What was wrong with it, and its id if it has one.
    Malformed(Value, Failure),
}

impl Incoming {
    fn of(message: Value) -> Incoming {
        let malformed = |id: Value, why: &str| Incoming::Malformed(id, Failure::new(Failure::INVALID_REQUEST, why));
        let Value::Object(mut message) = message else {
            return malformed(Value::Null, "a message is a JSON object");
        };
        let id = message.remove("id");
        let usable = id.as_ref().is_some_and(|id| id.is_string() || id.is_i64() || id.is_u64());
        let params = message.remove("params").unwrap_or_default();
        match (message.remove("method"), id) {
            (Some(Value::String(method)), None) => Incoming::Notification { method, params },
            (Some(Value::String(method)), Some(id)) if usable => Incoming::Request { id, method, params },
            (Some(Value::String(_)), Some(_)) => malformed(Value::Null, "an id is a text or a whole number"),
            (None, Some(_)) if message.contains_key("result") || message.contains_key("error") => Incoming::Response,
            (_, id) => {
                malformed(id.filter(|_| usable).unwrap_or_default(), "a message has a `method`, which is a text")
            }
        }
    }
}

/// The next message; none at the end of the input.
fn read(input: &mut MessageReader<impl BufRead>) -> io::Result<Option<Incoming>> {
    Ok(input.next_message()?.map(|read| match read {
        Ok(message) => Incoming::of(message),
        Err(malformed) => {
            let code = match malformed {
                Malformed::Header(_) => Failure::INVALID_REQUEST,
                Malformed::Content(_) => Failure::PARSE,
            };
            Incoming::Malformed(Value::Null, Failure::new(code, malformed.reason()))
        }
    }))
}

/// Serves until `exit`, or until the client is gone. Returns the process's exit status: 0 after `shutdown`, else 1.
pub fn serve(input: impl BufRead + Send + 'static, output: &mut dyn Write) -> u8 {
    let (sender, events) = channel();
    let (jobs, work) = channel::<AnalysisJob>();
    let (incoming, finished) = (sender.clone(), sender.clone());
    let reader = move || {
        let mut input = MessageReader::new(input);
        while let Ok(Some(message)) = read(&mut input) {
            if incoming.send(Event::Incoming(message)).is_err() {
                return;
            }
        }
        let _ = incoming.send(Event::End);
    };
    let analyst = move || {
        while let Ok(work) = work.recv() {
            if finished.send(Event::Done(Box::new(work.run()))).is_err() {
                return;
            }
        }
    };
    // The reader ends with its input; after `exit` nobody waits for it, nor for what is being computed.
    let (Some(reader), Some(analyst)) = (spawn("lsp reader", reader), spawn("lsp analyst", analyst)) else { return 1 };
    [reader, analyst].into_iter().for_each(std::mem::forget);
    let mut conversation = Conversation {
        server: Server::beside(),
        output,
        sender,
        events,
        jobs,
        waiting: Vec::new(),
        aside: Vec::new(),
        threads: Vec::new(),
        busy: false,
        ended: false,
    };
    // A client that does not read any more is gone.
    let _ = conversation.run();
    conversation.threads.drain(..).for_each(std::mem::forget);
    u8::from(!conversation.server.is_shut())
}

/// A thread with a stack as large as that of commands, if there is room for one. Its handle is joined or forgotten,
/// never dropped: glibc's `pthread_detach` reads what a thread that ends meanwhile has given back with its stack (glibc
/// bug 19951).
#[must_use]
fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    let run = Arc::new(Mutex::new(Some(run)));
    ptoc_driver::STACKS.iter().find_map(|stack| {
        let run = Arc::clone(&run);
        let builder = thread::Builder::new().name(name.into()).stack_size(*stack);
        let start = move || {
            let run = run.lock().ok().and_then(|mut run| run.take());
            if let Some(run) = run {
                run();
            }
        };
        builder.spawn(start).ok()
    })
}

/// What happens.
enum Event {
    Incoming(Incoming),
    /// An analysis has ended.
    Done(Box<Done>),
    /// A request that was computed aside has its answer.
    Answered(Value, Answer),
    /// The client says nothing more.
    End,
}

type Answer = Result<Reply, Failure>;

/// A request that waits for the analysis of its text.
struct Waiting {
    id: Value,
    method: String,
    params: Value,
    /// When it is answered from what there is.
    until: Option<Instant>,
}

/// A request that is being computed in a thread of its own.
struct Aside {
    id: Value,
    /// The text that it is about, and its version.
    text: Option<(String, Option<i32>)>,
}

/// So long a hover waits for the analysis of what was just edited: longer than most take, and no longer than a reader
/// does.
const HOVER: Duration = Duration::from_millis(500);

struct Conversation<'o> {
    server: Server,
    output: &'o mut dyn Write,
    /// For threads that compute answers.
    sender: Sender<Event>,
    events: Receiver<Event>,
    /// For the thread that analyses.
    jobs: Sender<AnalysisJob>,
    waiting: Vec<Waiting>,
    aside: Vec<Aside>,
    /// Of requests that are computed aside, or were.
    threads: Vec<JoinHandle<()>>,
    /// A text is being analysed.
    busy: bool,
    /// The client says nothing more.
    ended: bool,
}

impl Conversation<'_> {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let batch = self.next();
            let cancelled = cancelled(&batch);
            for event in batch {
                match event {
                    Event::Incoming(Incoming::Notification { method, .. }) if method == "exit" => return Ok(()),
                    Event::Incoming(incoming) => self.incoming(incoming, &cancelled)?,
                    Event::Done(done) => {
                        self.busy = false;
                        let _ = catch_unwind(AssertUnwindSafe(|| self.server.done(*done)));
                    }
                    Event::Answered(id, answer) => self.answered(&id, answer)?,
                    Event::End => self.ended = true,
                }
            }
            for Message { id, method, params } in self.server.settle() {
                let mut message = json!({"jsonrpc": "2.0", "method": method});
                if !params.is_null() {
                    message["params"] = params;
                }
                if let Some(id) = id {
                    message["id"] = json!(id);
                }
                write(self.output, message)?;
            }
            self.answer_waiting()?;
            for thread in self.threads.extract_if(.., |t| t.is_finished()) {
                let _ = thread.join();
            }
            if !self.busy
                && let Some(work) = self.server.work()
            {
                self.busy = self.jobs.send(work).is_ok();
            }
            if self.ended && !self.busy && self.waiting.is_empty() && self.aside.is_empty() {
                return Ok(());
            }
        }
    }

    /// All that has happened; if nothing has, waits until something does or a request has waited long enough.
    fn next(&self) -> Vec<Event> {
        let until = self.waiting.iter().filter_map(|w| w.until).min();
        let first = match until {
            Some(until) => self.events.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
            // A sender is kept here, so there is always one.
            None => self.events.recv().ok(),
        };
        first.into_iter().chain(self.events.try_iter()).collect()
    }

    fn incoming(&mut self, incoming: Incoming, cancelled: &[Value]) -> io::Result<()> {
        match incoming {
            Incoming::Notification { method, params } => {
                if method == "$/cancelRequest"
                    && let Some(id) = params.get("id")
                {
                    self.cancel(id)?;
                }
                if method == "textDocument/didChange" || method == "textDocument/didClose" {
                    self.overtake(&params)?;
                }
                // A bug in the handling of one message is no reason to lose the editor's state.
                let _ = catch_unwind(AssertUnwindSafe(|| self.server.notify(&method, params)));
                Ok(())
            }
            Incoming::Request { id, .. } if cancelled.contains(&id) => self.respond(id, Err(cancelled_by_client())),
            Incoming::Request { id, method, params } if method == "shutdown" => {
                // What has no answer yet gets none: the client does not wait for it.
                let waiting = std::mem::take(&mut self.waiting).into_iter().map(|w| w.id);
                let aside = std::mem::take(&mut self.aside).into_iter().map(|a| a.id);
                for pending in waiting.chain(aside).collect::<Vec<_>>() {
                    self.respond(pending, Err(Failure::new(Failure::CANCELLED, "the server is shut down")))?;
                }
                self.answer(id, &method, params)
            }
            Incoming::Request { id, method, params } => match self.server.pace(&method, &params) {
                Pace::AtOnce => self.answer(id, &method, params),
                Pace::Analysed => {
                    let until = (method == "textDocument/hover").then(|| Instant::now() + HOVER);
                    self.waiting.push(Waiting { id, method, params, until });
                    Ok(())
                }
                Pace::Aside => self.compute(id, &method, params),
            },
            Incoming::Response => Ok(()),
            Incoming::Malformed(id, failure) => self.respond(id, Err(failure)),
        }
    }

    fn answer(&mut self, id: Value, method: &str, params: Value) -> io::Result<()> {
        let answer = guarded(|| self.server.request(method, params));
        self.respond(id, answer)
    }

    /// Computes an answer in a thread of its own.
    fn compute(&mut self, id: Value, method: &str, params: Value) -> io::Result<()> {
        let uri = params.pointer("/textDocument/uri").and_then(Value::as_str);
        let text = uri.map(|uri| (uri.to_owned(), self.server.version(uri)));
        let Some(job) = self.server.aside(method, params.clone()) else { return self.answer(id, method, params) };
        let (sender, asked) = (self.sender.clone(), id.clone());
        let run = move || {
            let answer = guarded(job);
            let _ = sender.send(Event::Answered(asked, answer));
        };
        let Some(thread) = spawn("lsp request", run) else { return self.answer(id, method, params) };
        self.threads.push(thread);
        self.aside.push(Aside { id, text });
        Ok(())
    }

    /// An answer has come. It is of no use if the request was cancelled, or if its text is another one by now.
    fn answered(&mut self, id: &Value, answer: Answer) -> io::Result<()> {
        let Some(at) = self.aside.iter().position(|a| a.id == *id) else { return Ok(()) };
        let Aside { id, text } = self.aside.remove(at);
        let current = text.is_none_or(|(uri, version)| self.server.version(&uri) == version);
        self.respond(id, if current { answer } else { Err(modified()) })
    }

    /// Answers what has waited for an analysis that is there now, or long enough.
    fn answer_waiting(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let (ready, waiting): (Vec<Waiting>, Vec<Waiting>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|w| w.until.is_some_and(|u| u <= now) || self.server.pace(&w.method, &w.params) == Pace::AtOnce);
        self.waiting = waiting;
        ready.into_iter().try_for_each(|w| self.answer(w.id, &w.method, w.params))
    }

    /// The client does not want an answer any more.
    fn cancel(&mut self, id: &Value) -> io::Result<()> {
        let before = self.waiting.len() + self.aside.len();
        self.waiting.retain(|w| w.id != *id);
        self.aside.retain(|a| a.id != *id);
        match self.waiting.len() + self.aside.len() < before {
            true => self.respond(id.clone(), Err(cancelled_by_client())),
            false => Ok(()),
        }
    }

    /// A text changes: what was asked of it before has no answer any more, and clients ask again.
    fn overtake(&mut self, params: &Value) -> io::Result<()> {
        let uri = params.pointer("/textDocument/uri");
        let (gone, waiting): (Vec<Waiting>, Vec<Waiting>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|w| w.params.pointer("/textDocument/uri") == uri);
        self.waiting = waiting;
        gone.into_iter().try_for_each(|w| {
            let pulled = w.method == "textDocument/diagnostic";
            self.respond(w.id, Err(if pulled { ask_again() } else { modified() }))
        })
    }

    fn respond(&mut self, id: Value, answer: Answer) -> io::Result<()> {
        match answer {
            Ok(result) => {
                let text = result.text();
                write(self.output, format_args!(r#"{{"jsonrpc":"2.0","id":{id},"result":{text}}}"#))
            }
            Err(f) => {
                let mut error = json!({"code": f.code, "message": f.message});
                if f.code == Failure::SERVER_CANCELLED {
                    error["data"] = json!({"retriggerRequest": true});
                }
                write(self.output, json!({"jsonrpc": "2.0", "id": id, "error": error}))
            }
        }
    }
}

fn cancelled_by_client() -> Failure {
    Failure::new(Failure::CANCELLED, "cancelled by the client")
}

fn modified() -> Failure {
    Failure::new(Failure::CONTENT_MODIFIED, "the text has changed since it was asked")
}

fn ask_again() -> Failure {
    Failure::new(Failure::SERVER_CANCELLED, "the text has changed since it was asked")
}

/// An answer, or that there is a bug.
fn guarded(answer: impl FnOnce() -> Answer) -> Answer {
    let bug = |_| Err(Failure::new(Failure::INTERNAL, "a bug of ptoc: the server panicked"));
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(bug)
}

/// The ids of requests that are cancelled by what waits behind them.
fn cancelled(batch: &[Event]) -> Vec<Value> {
    let ids = batch.iter().filter_map(|event| match event {
        Event::Incoming(Incoming::Notification { method, params }) if method == "$/cancelRequest" => {
            params.get("id").cloned()
        }
        _ => None,
    });
    ids.collect()
}

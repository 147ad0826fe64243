//! Messages between the server and a client over two streams of bytes.
//!
//! One thread reads, so that the server sees what waits: requests that were cancelled meanwhile are not computed, and texts
//! are analysed when the last of their edits is in. A message that is no JSON or no message gets the protocol's error, and the
//! server goes on.

use super::{Failure, Message, Server};
use serde_json::{Value, json};
use std::io::{self, BufRead, Read as _, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Bytes of a message at most: more than any editor sends, and less than the machine has.
const LARGEST: usize = 256 << 20;

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
fn read(input: &mut impl BufRead) -> io::Result<Option<Incoming>> {
    let failure = |code, why: &str| Ok(Some(Incoming::Malformed(Value::Null, Failure::new(code, why))));
    // White space between messages is no message.
    let (mut length, mut headers) = (None, 0);
    loop {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&line);
        match text.trim().split_once(':') {
            Some((name, value)) => {
                headers += 1;
                if name.trim().eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse::<usize>().ok();
                }
            }
            None if text.trim().is_empty() && headers > 0 => break,
            None if text.trim().is_empty() => {}
            // Nothing says where this ends but the end of its line.
            None => return failure(Failure::INVALID_REQUEST, "a header is `Name: value`"),
        }
    }
    let Some(length) = length else {
        return failure(Failure::INVALID_REQUEST, "a message needs `Content-Length`, its number of bytes");
    };
    if length > LARGEST {
        // It is passed over without being kept.
        io::copy(&mut input.take(length as u64), &mut io::sink())?;
        return failure(Failure::INVALID_REQUEST, &format!("a message has at most {LARGEST} bytes"));
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    match serde_json::from_slice(&body) {
        Ok(message) => Ok(Some(Incoming::of(message))),
        Err(e) => failure(Failure::PARSE, &format!("the message is no JSON: {e}")),
    }
}

/// Serves until `exit`, or until the client is gone. Returns the process's exit status: 0 after `shutdown`, else 1.
pub fn serve(mut input: impl BufRead + Send + 'static, output: &mut dyn Write) -> u8 {
    let (sender, receiver) = channel();
    let reader = move || {
        while let Ok(Some(incoming)) = read(&mut input) {
            if sender.send(incoming).is_err() {
                return;
            }
        }
    };
    // The reader ends with its input; after `exit` nobody waits for it.
    if thread::Builder::new().name("lsp reader".into()).spawn(reader).is_err() {
        return 1;
    }
    let mut server = Server::new();
    // A client that does not read any more is gone.
    let _ = run(&mut server, &receiver, output);
    u8::from(!server.is_shut())
}

fn run(server: &mut Server, receiver: &Receiver<Incoming>, output: &mut dyn Write) -> io::Result<()> {
    while let Ok(first) = receiver.recv() {
        let batch: Vec<Incoming> = std::iter::once(first).chain(receiver.try_iter()).collect();
        let cancelled = cancelled(&batch);
        for incoming in batch {
            match incoming {
                Incoming::Notification { method, .. } if method == "exit" => return Ok(()),
                Incoming::Notification { method, params } => {
                    // A bug in the handling of one message is no reason to lose the editor's state.
                    let _ = catch_unwind(AssertUnwindSafe(|| server.notify(&method, params)));
                }
                Incoming::Request { id, .. } if cancelled.contains(&id) => {
                    respond(output, id, Err(Failure::new(Failure::CANCELLED, "cancelled by the client")))?;
                }
                Incoming::Request { id, method, params } => {
                    let answer = catch_unwind(AssertUnwindSafe(|| server.request(&method, params)));
                    let bug = |_| Err(Failure::new(Failure::INTERNAL, "a bug of ptoc: the server panicked"));
                    respond(output, id, answer.unwrap_or_else(bug))?;
                }
                Incoming::Response => {}
                Incoming::Malformed(id, failure) => respond(output, id, Err(failure))?,
            }
        }
        let settled = catch_unwind(AssertUnwindSafe(|| server.settle())).unwrap_or_default();
        for Message { id, method, params } in settled {
            let mut message = json!({"jsonrpc": "2.0", "method": method});
            if !params.is_null() {
                message["params"] = params;
            }
            if let Some(id) = id {
                message["id"] = json!(id);
            }
            write(output, &message)?;
        }
    }
    Ok(())
}

/// The ids of requests that are cancelled by what waits behind them.
fn cancelled(batch: &[Incoming]) -> Vec<Value> {
    let ids = batch.iter().filter_map(|incoming| match incoming {
        Incoming::Notification { method, params } if method == "$/cancelRequest" => params.get("id").cloned(),
        _ => None,
    });
    ids.collect()
}

fn respond(output: &mut dyn Write, id: Value, answer: Result<Value, Failure>) -> io::Result<()> {
    let message = match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(f) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": f.code, "message": f.message}}),
    };
    write(output, &message)
}

fn write(output: &mut dyn Write, message: &Value) -> io::Result<()> {
    let text = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}

//! Messages between the server and a client over two streams of bytes.
//!
//! One thread reads, so that the server sees what waits: requests that were cancelled meanwhile are not computed, and texts
//! are analysed when the last of their edits is in. A message that is no JSON or no message gets the protocol's error, and the
//! server goes on.

use super::server::{Failure, Server};
use lsp_server::{Message, RequestId};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// What the reader has read.
enum Incoming {
    Message(Message),
    /// What was wrong with it.
    Malformed(String),
}

/// Serves until `exit`, or until the client is gone. Returns the process's exit status: 0 after `shutdown`, else 1.
pub fn serve(mut input: impl BufRead + Send + 'static, output: &mut dyn Write) -> u8 {
    let (sender, receiver) = channel();
    let read = move || {
        loop {
            let incoming = match Message::read(&mut input) {
                Ok(Some(message)) => Incoming::Message(message),
                Ok(None) => return,
                Err(e) if e.kind() == io::ErrorKind::InvalidData => Incoming::Malformed(e.to_string()),
                Err(_) => return,
            };
            if sender.send(incoming).is_err() {
                return;
            }
        }
    };
    // The reader ends with its input; after `exit` nobody waits for it.
    if thread::Builder::new().name("lsp reader".into()).spawn(read).is_err() {
        return 1;
    }
    let mut server = Server::new();
    match run(&mut server, &receiver, output) {
        Ok(()) | Err(_) => u8::from(!server.is_shut()),
    }
}

fn run(server: &mut Server, receiver: &Receiver<Incoming>, output: &mut dyn Write) -> io::Result<()> {
    while let Ok(first) = receiver.recv() {
        let batch: Vec<Incoming> = std::iter::once(first).chain(receiver.try_iter()).collect();
        let cancelled = cancelled(&batch);
        for incoming in batch {
            match incoming {
                Incoming::Message(Message::Notification(n)) if n.method == "exit" => return Ok(()),
                Incoming::Message(Message::Notification(n)) => {
                    // A bug in the handling of one message is no reason to lose the editor's state.
                    let _ = catch_unwind(AssertUnwindSafe(|| server.notify(&n.method, n.params)));
                }
                Incoming::Message(Message::Request(r)) => {
                    let answer = if cancelled.contains(&r.id) {
                        Err(Failure::new(Failure::CANCELLED, "cancelled by the client"))
                    } else {
                        let answered = catch_unwind(AssertUnwindSafe(|| server.request(&r.method, r.params)));
                        answered.unwrap_or_else(|_| {
                            Err(Failure::new(Failure::INTERNAL, "a bug of ptoc: the server panicked"))
                        })
                    };
                    respond(output, json!(r.id), answer)?;
                }
                // The server asks nothing.
                Incoming::Message(Message::Response(_)) => {}
                Incoming::Malformed(why) => {
                    let code = if why.contains("payload") { Failure::PARSE } else { Failure::INVALID_REQUEST };
                    respond(output, Value::Null, Err(Failure::new(code, why)))?;
                }
            }
        }
        let settled = catch_unwind(AssertUnwindSafe(|| server.settle())).unwrap_or_default();
        for (method, params) in settled {
            write(output, &json!({"jsonrpc": "2.0", "method": method, "params": params}))?;
        }
    }
    Ok(())
}

/// The requests that are cancelled by what waits behind them.
fn cancelled(batch: &[Incoming]) -> HashSet<RequestId> {
    let ids = batch.iter().filter_map(|incoming| match incoming {
        Incoming::Message(Message::Notification(n)) if n.method == "$/cancelRequest" => {
            serde_json::from_value(n.params.get("id")?.clone()).ok()
        }
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

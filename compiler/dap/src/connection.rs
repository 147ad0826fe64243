//! The conversation with a client: requests in, responses and events out.

use ptoc_base_protocol::{MessageReader, write};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

/// A request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// Its number.
    pub seq: i64,
    /// What is wanted.
    pub command: String,
    /// How.
    pub arguments: Value,
}

/// What a client sends.
#[derive(Debug)]
pub(crate) enum Incoming {
    Request(Request),
    /// Why it is no request.
    Malformed(String),
}

impl Incoming {
    /// Responses of a client, to whom nothing is asked, are none.
    fn of(message: &Value) -> Option<Incoming> {
        let text = |key: &str| message.get(key).and_then(Value::as_str);
        match (text("type"), text("command"), message.get("seq").and_then(Value::as_i64)) {
            (Some("response" | "event"), ..) => None,
            (Some("request"), Some(command), Some(seq)) => {
                let arguments = message.get("arguments").cloned().unwrap_or_default();
                Some(Incoming::Request(Request { seq, command: command.to_owned(), arguments }))
            }
            _ => {
                let why = "a request has `type`: \"request\", a number `seq`, and a text `command`";
                Some(Incoming::Malformed(why.into()))
            }
        }
    }
}

/// Both directions. The parts of a session share it.
pub(crate) struct Connection<'o> {
    incoming: Receiver<Incoming>,
    output: RefCell<&'o mut (dyn Write + Send)>,
    seq: Cell<i64>,
    /// Nobody reads any more.
    closed: Cell<bool>,
    /// The client counts lines and columns from this on.
    first: Cell<(u32, u32)>,
}

impl<'o> Connection<'o> {
    /// Begins to read. The thread ends with its input.
    pub fn open(input: impl BufRead + Send + 'static, output: &'o mut (dyn Write + Send)) -> Option<Connection<'o>> {
        let (sender, incoming) = channel();
        let reader = move || {
            let mut input = MessageReader::new(input);
            while let Ok(Some(read)) = input.next_message() {
                let incoming = match read {
                    Ok(message) => Incoming::of(&message),
                    Err(malformed) => Some(Incoming::Malformed(malformed.reason().to_owned())),
                };
                if incoming.is_some_and(|incoming| sender.send(incoming).is_err()) {
                    return;
                }
            }
        };
        // Never dropped: see `spawn` of the language server.
        std::mem::forget(thread::Builder::new().name("dap reader".into()).spawn(reader).ok()?);
        let (seq, closed, first) = (Cell::new(1), Cell::new(false), Cell::new((1, 1)));
        Some(Connection { incoming, output: RefCell::new(output), seq, closed, first })
    }

    /// Waits for what the client sends next; nothing if it is gone.
    pub fn next(&self) -> Option<Incoming> {
        if self.closed.get() { None } else { self.incoming.recv().ok() }
    }

    /// What the client has sent, without waiting; an error if it is gone.
    pub fn poll(&self) -> Result<Option<Incoming>, ()> {
        match self.incoming.try_recv() {
            _ if self.closed.get() => Err(()),
            Ok(incoming) => Ok(Some(incoming)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(()),
        }
    }

    /// Notes what `initialize` says of the client.
    pub fn learn(&self, arguments: &Value) {
        let from_one = |key: &str| u32::from(arguments.get(key).and_then(Value::as_bool).unwrap_or(true));
        self.first.set((from_one("linesStartAt1"), from_one("columnsStartAt1")));
    }

    /// A line as the client counts, of one that is counted from 1.
    pub fn line_out(&self, line: u32) -> u32 {
        line - 1 + self.first.get().0
    }

    /// A line counted from 1, of one of the client's.
    pub fn line_in(&self, line: u32) -> u32 {
        (line + 1).saturating_sub(self.first.get().0)
    }

    /// A column as the client counts, of one that is counted from 1.
    pub fn column_out(&self, column: u32) -> u32 {
        column - 1 + self.first.get().1
    }

    fn send(&self, mut message: Value) {
        let seq = self.seq.get();
        self.seq.set(seq + 1);
        message["seq"] = json!(seq);
        // A client that does not read any more is gone; that ends the session at the next message.
        if write(&mut **self.output.borrow_mut(), message).is_err() {
            self.closed.set(true);
        }
    }

    /// The answer to a request.
    pub fn succeed(&self, request: &Request, body: Value) {
        let (seq, command) = (request.seq, &request.command);
        let mut message = json!({"type": "response", "request_seq": seq, "success": true, "command": command});
        if !body.is_null() {
            message["body"] = body;
        }
        self.send(message);
    }

    /// A refusal, which is shown to the user.
    pub fn fail(&self, request: &Request, why: &str) {
        self.refuse(request, why, true);
    }

    /// A refusal. `shown` makes clients show it in a window of its own.
    pub fn refuse(&self, request: &Request, why: &str, shown: bool) {
        let error = json!({"id": 1, "format": "{why}", "variables": {"why": why}, "showUser": shown});
        self.send(json!({"type": "response", "request_seq": request.seq, "success": false,
                         "command": request.command, "message": why, "body": {"error": error}}));
    }

    /// An event.
    pub fn event(&self, event: &str, body: Value) {
        let mut message = json!({"type": "event", "event": event});
        if !body.is_null() {
            message["body"] = body;
        }
        self.send(message);
    }

    /// Text for the debug console. The categories are the protocol's: `console`, `important`, `stdout`, `stderr`.
    pub fn output(&self, category: &str, text: &str) {
        if !text.is_empty() {
            self.event("output", json!({"category": category, "output": text}));
        }
    }

    /// Says that a message was malformed: there is no request that could be answered.
    pub fn complain(&self, why: &str) {
        self.output("important", &format!("a message of the client is not understood: {why}\n"));
    }
}

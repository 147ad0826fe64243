//! A client of the Debug Adapter Protocol that drives the real binary.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// So long a client waits: far longer than anything here takes, for machines that do other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where the repository begins, from the directory in which tests run.
const ROOT: &str = "../../";

/// A conversation with `ptoc dap`.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    seq: i64,
    /// Events that no test has looked at.
    events: Vec<Value>,
}

/// A file of `tests/debug`, or of the examples.
pub fn program(name: &str) -> PathBuf {
    let path = if name.starts_with("examples/") { format!("{ROOT}{name}") } else { format!("tests/debug/{name}") };
    Path::new(&path).canonicalize().unwrap()
}

impl Client {
    pub fn start() -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptoc"));
        let mut child =
            command.arg("dap").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, messages) = channel();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            while let Some(message) = receive(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Client { child, input, messages, seq: 0, events: Vec::new() }
    }

    /// After `initialize`, as an editor does it.
    pub fn new() -> Client {
        let mut client = Client::start();
        client.ask("initialize", json!({"adapterID": "ptoc", "linesStartAt1": true, "columnsStartAt1": true}));
        client
    }

    /// With a program that stands at its first statement.
    pub fn at_entry(launch: Value) -> Client {
        let mut client = Client::new();
        let mut launch = launch;
        launch["stopOnEntry"] = json!(true);
        client.ask("launch", launch);
        client.event("initialized");
        client.ask("configurationDone", Value::Null);
        assert_eq!(client.event("stopped")["reason"], "entry");
        client
    }

    /// Raw bytes.
    pub fn send(&mut self, text: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    fn post(&mut self, command: &str, arguments: Value) -> i64 {
        self.seq += 1;
        let message = json!({"seq": self.seq, "type": "request", "command": command, "arguments": arguments});
        let text = message.to_string();
        self.send(&format!("Content-Length: {}\r\n\r\n{text}", text.len()));
        self.seq
    }

    fn next(&mut self, waiting_for: &str) -> Value {
        match self.messages.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("no {waiting_for}; so far {:?}", self.events),
            Err(RecvTimeoutError::Disconnected) => {
                let mut text = String::new();
                self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
                panic!("the adapter has ended before {waiting_for}; {text}")
            }
        }
    }

    /// The response to a request, whatever it says.
    pub fn response(&mut self, command: &str, arguments: Value) -> Value {
        let seq = self.post(command, arguments);
        loop {
            let message = self.next(command);
            if message["type"] == "response" {
                assert_eq!((&message["request_seq"], &message["command"]), (&json!(seq), &json!(command)));
                return message;
            }
            self.events.push(message);
        }
    }

    /// The body of a response that says yes.
    pub fn ask(&mut self, command: &str, arguments: Value) -> Value {
        let response = self.response(command, arguments);
        assert_eq!(response["success"], true, "{response}");
        response["body"].clone()
    }

    /// The reason of a response that says no.
    pub fn refused(&mut self, command: &str, arguments: Value) -> String {
        let response = self.response(command, arguments);
        assert_eq!(response["success"], false, "{response}");
        let message = response["message"].as_str().unwrap().to_owned();
        assert_eq!(response["body"]["error"]["variables"]["why"], json!(message));
        message
    }

    /// The body of the next event of that name; those before it are kept.
    pub fn event(&mut self, name: &str) -> Value {
        loop {
            if let Some(at) = self.events.iter().position(|e| e["event"] == name) {
                return self.events.remove(at)["body"].clone();
            }
            let message = self.next(name);
            assert_eq!(message["type"], "event", "{message}");
            self.events.push(message);
        }
    }

    /// All that was output so far, in order, with its category.
    pub fn output(&mut self) -> String {
        let (output, rest) = std::mem::take(&mut self.events).into_iter().partition(|e| e["event"] == "output");
        self.events = rest;
        let text = |e: &Value| {
            let body = &e["body"];
            format!("[{}] {}", body["category"].as_str().unwrap(), body["output"].as_str().unwrap())
        };
        let all: Vec<Value> = output;
        normal(&all.iter().map(text).collect::<String>())
    }

    /// Sends the run on and tells where it stops: reason, place, function.
    pub fn go(&mut self, command: &str, mut arguments: Value) -> String {
        arguments["threadId"] = json!(1);
        self.ask(command, arguments);
        self.stop()
    }

    /// Where the run stops next.
    pub fn stop(&mut self) -> String {
        let stopped = self.event("stopped");
        let top = self.ask("stackTrace", json!({"threadId": 1, "levels": 1}))["stackFrames"][0].clone();
        let text = stopped.get("text").map_or(String::new(), |t| format!(": {}", t.as_str().unwrap()));
        format!("{}{text} at {} in {}", stopped["reason"].as_str().unwrap(), top["line"], top["name"].as_str().unwrap())
    }

    /// The value of an expression in a frame.
    pub fn value(&mut self, expression: &str, frame: i64) -> String {
        let response =
            self.response("evaluate", json!({"expression": expression, "frameId": frame, "context": "watch"}));
        let body = if response["success"] == true { &response["body"]["result"] } else { &response["message"] };
        body.as_str().unwrap().to_owned()
    }

    /// Breakpoints of a file, by line.
    pub fn breakpoints(&mut self, program: &Path, list: Value) -> Value {
        self.ask("setBreakpoints", json!({"source": {"path": program}, "breakpoints": list}))["breakpoints"].take()
    }

    /// Ends, and gives the exit status.
    pub fn disconnect(mut self) -> i32 {
        self.ask("disconnect", json!({}));
        self.child.wait().unwrap().code().unwrap()
    }

    /// The client dies; the exit status.
    pub fn vanish(mut self) -> i32 {
        self.input = None;
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A message; none at the end.
fn receive(output: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim().split_once(": ") {
            Some(("Content-Length", n)) => length = n.parse::<usize>().ok(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length?];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// Text without the directory of the repository.
pub fn normal(text: &str) -> String {
    let root = Path::new(ROOT).canonicalize().unwrap();
    let here = Path::new("tests/debug").canonicalize().unwrap();
    text.replace(&format!("{}/", here.display()), "").replace(&format!("{}/", root.display()), "")
}

//! `ptoc dap`: the debugger behind the Debug Adapter Protocol, over two streams.
//!
//! A thread reads messages. All else is done by the thread that serves: it answers until a program is launched
//! ([`launch`]), runs the program on the interpreter, and answers again whenever the run stands ([`adapter`]); while it
//! goes on, it looks for messages at every place where it could stop. [`breakpoints`] and [`variables`] are the two
//! large families of requests, [`picture`] draws tiles.

#![forbid(unsafe_code)]

mod adapter;
mod breakpoints;
mod connection;
mod launch;
mod picture;
mod requests;
mod sources;
mod variables;

use connection::{Connection, Incoming};
use launch::Ended;
use serde_json::{Value, json};
use std::io::{BufRead, Write};

/// Serves until the client disconnects or is gone. Returns the process's exit status: 0 after `disconnect`, else 1.
pub fn serve(input: impl BufRead + Send + 'static, output: &mut (dyn Write + Send)) -> u8 {
    let Some(connection) = Connection::open(input, output) else { return 1 };
    let mut initialized = false;
    while let Some(incoming) = connection.next() {
        let request = match incoming {
            Incoming::Request(request) => request,
            Incoming::Malformed(why) => {
                connection.complain(&why);
                continue;
            }
        };
        match request.command.as_str() {
            "initialize" => {
                initialized = true;
                connection.learn(&request.arguments);
                connection.succeed(&request, capabilities());
            }
            "disconnect" => {
                connection.succeed(&request, Value::Null);
                return 0;
            }
            _ if !initialized => connection.fail(&request, "`initialize` comes first"),
            "launch" => match launch::launch(&connection, &request) {
                Ended::Refused | Ended::Done => {}
                Ended::Disconnected => return 0,
                Ended::Gone => return 1,
            },
            "attach" => connection.fail(&request, "no kernel runs that could be attached to: `launch` runs one"),
            "threads" => connection.succeed(&request, json!({"threads": []})),
            "terminate" => connection.succeed(&request, Value::Null),
            command => connection.fail(&request, &idle(command)),
        }
    }
    1
}

/// What is said of a request while no program is there.
fn idle(command: &str) -> String {
    match requests::is_known(command) {
        true => format!("`{command}`: no program runs; `launch` starts one"),
        false => unknown(command),
    }
}

/// What is said of a request that is not served.
fn unknown(command: &str) -> String {
    format!("`{command}` is not served")
}

/// What the adapter announces.
fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsLogPoints": true,
        "supportsDataBreakpoints": true,
        "supportsBreakpointLocationsRequest": true,
        "supportsSteppingGranularity": true,
        "supportsStepBack": true,
        "supportsEvaluateForHovers": true,
        "supportsExceptionInfoRequest": true,
        "supportsLoadedSourcesRequest": true,
        "supportsTerminateRequest": true,
        "supportsDelayedStackTraceLoading": true,
        "supportsCompletionsRequest": true,
        "supportsClipboardContext": true,
        // A client launches anew, and values are the program's.
        "supportsRestartRequest": false,
        "supportsSetVariable": false,
        "supportsSetExpression": false,
        "exceptionBreakpointFilters": [],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_announced_are_served() {
        for command in ["stepBack", "reverseContinue", "dataBreakpointInfo", "completions", "ptoc/picture"] {
            assert!(requests::is_known(command), "{command}");
        }
        assert!(idle("next").contains("no program runs"));
        assert!(idle("nxt").contains("not served"));
    }
}

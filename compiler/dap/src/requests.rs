//! The requests by name, and their arguments as far as they are used.

use super::connection::Request;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// All requests that are served.
pub const REQUESTS: [&str; 31] = [
    "initialize",
    "launch",
    "attach",
    "configurationDone",
    "disconnect",
    "terminate",
    "threads",
    "setBreakpoints",
    "setFunctionBreakpoints",
    "setExceptionBreakpoints",
    "dataBreakpointInfo",
    "setDataBreakpoints",
    "breakpointLocations",
    "continue",
    "next",
    "stepIn",
    "stepOut",
    "stepBack",
    "reverseContinue",
    "pause",
    "stackTrace",
    "scopes",
    "variables",
    "evaluate",
    "completions",
    "source",
    "loadedSources",
    "exceptionInfo",
    "ptoc/picture",
    "ptoc/lastWrite",
    "ptoc/block",
];

/// Whether a request of that name is served, if only by saying why not.
pub(crate) fn is_known(command: &str) -> bool {
    REQUESTS.contains(&command)
}

/// The arguments of a request; what is missing may be.
pub(crate) fn read<T: DeserializeOwned>(request: &Request) -> Result<T, String> {
    let empty = Value::Object(serde_json::Map::new());
    let given = if request.arguments.is_null() { &empty } else { &request.arguments };
    T::deserialize(given).map_err(|e| format!("the arguments of `{}`: {e}", request.command))
}

/// A source, as a client names it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Source {
    pub name: Option<String>,
    pub path: Option<String>,
    pub source_reference: Option<i64>,
}

/// One breakpoint of `setBreakpoints`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceBreakpoint {
    pub line: u32,
    pub condition: Option<String>,
    pub hit_condition: Option<String>,
    pub log_message: Option<String>,
}

/// `setBreakpoints`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetBreakpoints {
    pub source: Source,
    #[serde(default)]
    pub breakpoints: Vec<SourceBreakpoint>,
}

/// One breakpoint of `setFunctionBreakpoints`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FunctionBreakpoint {
    pub name: String,
    pub condition: Option<String>,
    pub hit_condition: Option<String>,
}

/// `setFunctionBreakpoints`
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SetFunctionBreakpoints {
    pub breakpoints: Vec<FunctionBreakpoint>,
}

/// One breakpoint of `setDataBreakpoints`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DataBreakpoint {
    pub data_id: String,
    pub access_type: Option<String>,
    pub condition: Option<String>,
    pub hit_condition: Option<String>,
}

/// `setDataBreakpoints`
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SetDataBreakpoints {
    pub breakpoints: Vec<DataBreakpoint>,
}

/// `dataBreakpointInfo`: a name in a container, or an expression in a frame.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DataBreakpointInfo {
    pub variables_reference: Option<i64>,
    pub name: String,
    pub frame_id: Option<i64>,
}

/// `breakpointLocations`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BreakpointLocations {
    pub source: Source,
    pub line: u32,
    pub end_line: Option<u32>,
}

/// `next`, `stepIn`, `stepOut`, `stepBack`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Step {
    pub granularity: Option<Granularity>,
}

/// What one step is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Granularity {
    Statement,
    Line,
    Instruction,
}

/// `stackTrace`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StackTrace {
    pub start_frame: Option<usize>,
    pub levels: Option<usize>,
}

/// `scopes`, and what else is asked of a frame.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Scopes {
    pub frame_id: i64,
}

/// `variables`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Variables {
    pub variables_reference: i64,
    pub filter: Option<String>,
    pub start: Option<usize>,
    pub count: Option<usize>,
}

/// `evaluate`, `ptoc/picture` and `ptoc/lastWrite`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Evaluate {
    pub expression: String,
    pub frame_id: Option<i64>,
    pub context: Option<String>,
}

/// `completions`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Completions {
    pub frame_id: Option<i64>,
    pub text: String,
    pub column: u32,
}

/// `source`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceText {
    pub source: Option<Source>,
    #[serde(default)]
    pub source_reference: i64,
}

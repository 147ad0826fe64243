//! Why a request has no result.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// An error of the protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// JSON-RPC's or the protocol's number.
    pub code: i32,
    /// For the client's log; of a refusal, for its user.
    pub message: String,
}

impl Failure {
    pub(super) const PARSE: i32 = -32700;
    pub(super) const INVALID_REQUEST: i32 = -32600;
    pub(super) const METHOD_NOT_FOUND: i32 = -32601;
    pub(super) const INVALID_PARAMS: i32 = -32602;
    pub(super) const INTERNAL: i32 = -32603;
    pub(super) const NOT_INITIALIZED: i32 = -32002;
    pub(super) const REQUEST_FAILED: i32 = -32803;
    pub(super) const CANCELLED: i32 = -32800;
    pub(super) const CONTENT_MODIFIED: i32 = -32801;
    pub(super) const SERVER_CANCELLED: i32 = -32802;

    pub(super) fn new(code: i32, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// The request is in order, and what it asks for cannot be done.
    pub(super) fn refused(message: impl Into<String>) -> Failure {
        Failure::new(Failure::REQUEST_FAILED, message)
    }
}

/// A request's parameters.
pub(super) fn read<T: DeserializeOwned>(params: Value) -> Result<T, Failure> {
    serde_json::from_value(params).map_err(|e| Failure::new(Failure::INVALID_PARAMS, plain(&e.to_string())))
}

/// What is wrong with parameters, in the words of JSON: who writes a client does not know the names of our types.
fn plain(error: &str) -> String {
    let (found, expected) = match error.split_once(", expected ") {
        Some((found, expected)) => {
            let found = found.replace("invalid type: ", "").replace("invalid value: ", "");
            let found = match &*found {
                "sequence" => "an array",
                "map" => "an object",
                other => other,
            };
            (found.replace("invalid length ", "an array of length "), expected)
        }
        None if error.starts_with("data did not match") => {
            return "a parameter has none of the forms that the protocol gives it".into();
        }
        None => return format!("the parameters are not those of the request: {error}"),
    };
    let form = match expected.split(' ').next().unwrap_or_default() {
        "struct" | "map" => "an object",
        "enum" | "variant" | "tuple" | "internally" | "adjacently" => "a value of the protocol",
        "a" if expected.starts_with("a sequence") => "an array",
        "a" if expected.starts_with("a boolean") => "true or false",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        _ => expected,
    };
    format!("the parameters are not those of the request: {found} where {form} is to be")
}

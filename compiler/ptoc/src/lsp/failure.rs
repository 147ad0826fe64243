//! Why a request has no result.

use serde::Serialize;
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
    serde_json::from_value(params).map_err(|e| Failure::new(Failure::INVALID_PARAMS, e.to_string()))
}

/// A request's result.
pub(super) fn result(value: impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|e| Failure::new(Failure::INTERNAL, e.to_string()))
}

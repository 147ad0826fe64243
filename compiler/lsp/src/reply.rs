//! What a request is answered with.

use super::failure::Failure;
use serde::Serialize;
use serde_json::Value;

/// A result, written already: no tree is built of a list of hundreds of proposals, only to be walked once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply(String);

impl Reply {
    /// What is JSON already.
    pub(super) fn written(json: String) -> Reply {
        Reply(json)
    }

    /// As JSON.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// For who wants to look into it.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).expect("it was written as JSON")
    }
}

/// A request's result.
pub(super) fn result(value: impl Serialize) -> Result<Reply, Failure> {
    serde_json::to_string(&value).map(Reply).map_err(|e| Failure::new(Failure::INTERNAL, e.to_string()))
}

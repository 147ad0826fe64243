//! What a name stands for at a place of the source.

use ptoc_analysis::debug::{DebugInfo, Named};
use ptoc_diagnostics::{Span, suggest};

/// A place from which names are seen.
#[derive(Clone, Copy, Debug)]
pub struct Viewpoint {
    /// The innermost scope.
    pub scope: u32,
    /// What is defined from here on is not visible yet.
    pub at: Span,
}

/// Everything that is visible, innermost first; of equal names only the one that counts.
pub fn visible<'d>(debug: &'d DebugInfo, from: Viewpoint) -> Vec<&'d Named> {
    let mut found: Vec<&'d Named> = Vec::new();
    let frame = debug.frame(from.scope);
    let mut scope = from.scope;
    loop {
        for named in debug.scopes[scope as usize].names.iter().rev() {
            let later = named.span.file == from.at.file && named.span.start >= from.at.start;
            if !later && !found.iter().any(|n| n.name == named.name) {
                found.push(named);
            }
        }
        if scope == frame {
            return found;
        }
        scope = debug.scopes[scope as usize].parent;
    }
}

/// The meaning of `name`, or what to say about it.
pub fn find<'d>(debug: &'d DebugInfo, from: Viewpoint, name: &str) -> Result<&'d Named, String> {
    let all = visible(debug, from);
    if let Some(found) = all.iter().find(|n| n.name == name) {
        return Ok(found);
    }
    // Later in this block, or in one beside it.
    let elsewhere = debug.scopes.iter().flat_map(|s| &s.names).any(|n| n.name == name && n.span.file == from.at.file);
    let mut message = match elsewhere {
        true => format!("`{name}` is not visible here: it is defined later, or in another block or function"),
        false => format!("nothing is called `{name}` here"),
    };
    if elsewhere {
        return Err(message);
    }
    if let Some(near) = suggest(name, all.iter().map(|n| n.name.as_str())) {
        message.push_str(&format!("; did you mean `{near}`?"));
    }
    Err(message)
}

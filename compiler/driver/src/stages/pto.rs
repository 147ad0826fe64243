//! PTO text of a kernel.

use crate::session::{Failed, Session};
use ptoc_diagnostics::Span;
use ptoc_placement::PlacedKernel;
use ptoc_pto::attr::Source;
use ptoc_pto::write::Level;
use std::path::Path;

/// The kernel as PTO text of the session's level. Each operation has its place in the source.
pub fn text(session: &mut Session, placed: &PlacedKernel) -> Result<String, Failed> {
    let level = session.pto_level;
    let kernel = match level {
        Level::Automatic => placed.kernel.clone(),
        Level::Explicit => {
            let bytes = ptoc_placement::physical(&placed.kernel, &placed.placement, &session.target);
            ptoc_opt::sync::insert_and_report(bytes, &session.target).0
        }
    };
    let sources = &session.sources;
    let place = |span: Span| {
        let name = sources.name(span.file);
        let last = Path::new(name).file_name().map(|n| n.to_string_lossy().into_owned());
        let position = sources.position(span.file, span.start);
        let file = last.unwrap_or_else(|| name.to_owned()).into();
        Some(Source::Place { file, line: position.line, column: position.column })
    };
    match ptoc_pto::write::write(&kernel, level, &place) {
        Ok(module) => Ok(ptoc_pto::print(&module)),
        Err(d) => session.fail(*d),
    }
}

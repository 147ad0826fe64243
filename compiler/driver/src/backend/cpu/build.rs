//! Objects of machine code, for C.

use crate::backend::wrong_backend;
use crate::build::{BuildUnit, Built, CFunction, RUNTIME, Request, archive, header};
use crate::session::Session;
use ptoc_diagnostics::Diagnostic;

/// Builds a kernel.
pub(super) fn build(session: &Session, unit: &BuildUnit, request: &Request) -> Result<Built, Box<Diagnostic>> {
    request.without_launcher()?;
    let Some(module) = &unit.prepared.module else {
        return Err(Box::new(wrong_backend(&session.target, &super::Cpu)));
    };
    let function = CFunction::new(unit, module, request.symbol.as_deref(), &[]).map_err(|e| e.told(unit, request))?;
    let object = ptoc_cpu::object::compile(module, &function.interface).map_err(Box::new)?;
    let widths = object.widths.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let variable = ptoc_cpu::object::VECTORS_VARIABLE;
    let mut notes = vec![
        format!("There is code for vectors of {widths} bits, and the processor says which is used. {variable} in the"),
        "environment gives the most, when the function is first called.".to_owned(),
    ];
    if object.prints {
        notes.push("Its `print` statements are silent.".into());
    }
    let mut remarks = Vec::new();
    let mut links = " -lm -lpthread".to_owned();
    let routines = &object.routines;
    let bytes = match &*request.extension {
        "a" => archive::archive(&object.bytes, &format!("{}.o", function.interface.symbol), routines)?,
        "so" => archive::shared(&object.bytes, &request.file, routines)?,
        _ => {
            if !routines.is_empty() {
                let all = routines.join(", ");
                links = format!(" {RUNTIME}{links}");
                notes.push(format!("It calls routines of ptoc's runtime ({all}): link {RUNTIME} behind it."));
                remarks.push(format!("`{}` calls routines of the runtime: link `{RUNTIME}` behind it", request.file));
            }
            object.bytes
        }
    };
    notes.push(format!("Link: cc main.c {}{links}", request.file));
    let header = header::of(unit, &function, module, request, &notes);
    Ok(Built { bytes, header, launcher: None, about: unit.about(), remarks, links })
}

//! The memory maps of a kernel, or of those that a program launches.

mod workspace;

use crate::calls;
use crate::session::{CompilationUnit, EntryPoint, Failed, RepairOrigin, Session, Waiting};
use ptoc_analysis::{Bindings, Instance};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_isa::{Loc, Target};
use ptoc_names::ItemId;
use ptoc_placement::MemoryMap;

/// The maps of an entry with the session's definitions: of a program that makes tensors first that of its workspace,
/// then those of the kernels that it launches.
pub fn maps_of(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
) -> Result<Vec<MemoryMap>, Failed> {
    let bindings = session.bindings(entry, unit)?;
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    let (instances, workspace) = elaborated(session, unit, entry, &bindings)?;
    let told = session.diagnostics.has_errors();
    let mut list = Vec::from_iter(workspace);
    for (mut instance, kernel, bindings) in instances {
        let debug = std::mem::take(&mut instance.debug);
        let (mut map, found) = session.map(instance, &RepairOrigin { unit, kernel, bindings: &bindings });
        // What lies past the end was said of its address.
        session.diagnostics.extend(found.into_iter().filter(|d| !(told && d.code == codes::CAPACITY)));
        if let Some(map) = &mut map {
            map.calls = calls::of(map, &debug);
        }
        list.extend(map);
    }
    if list.is_empty() {
        return Err(Failed);
    }
    Ok(list)
}

/// Elaborates; of a program each kernel that it launches once. A constant address past the end of its memory is refused
/// there; for the map, which shows such things, the kernel is elaborated once more as if the memories were larger.
pub fn instances(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    bindings: &Bindings,
) -> Result<Vec<(Instance, ItemId, Bindings)>, Failed> {
    elaborated(session, unit, entry, bindings).map(|(instances, _)| instances)
}

/// A kernel that was elaborated, and what with.
type Elaborated = (Instance, ItemId, Bindings);

/// See [`instances`]; with the map of a program's workspace, if it has one.
fn elaborated(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    bindings: &Bindings,
) -> Result<(Vec<Elaborated>, Option<MemoryMap>), Failed> {
    if entry.program {
        let program = session.instantiate_program(unit, entry.id, bindings, Waiting::IsError).ok_or(Failed)?;
        // Units in memory have places for them, and no workspace.
        let shown = !program.locals.is_empty() && !session.target.is_pim();
        let map = shown.then(|| workspace::map(session, &program, entry.item.name.span));
        return Ok((program.kernels(), map));
    }
    kernel_instance(session, unit, entry, bindings).map(|instances| (instances, None))
}

fn kernel_instance(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    bindings: &Bindings,
) -> Result<Vec<(Instance, ItemId, Bindings)>, Failed> {
    if let Some(instance) = session.instantiate(unit, entry.id, bindings, Waiting::IsError) {
        return Ok(vec![(instance, entry.id, bindings.clone())]);
    }
    let beyond = |d: &Diagnostic| !d.is_error() || d.code == codes::ASSIGN_OUT_OF_RANGE;
    if !session.diagnostics.iter().all(beyond) {
        return Err(Failed);
    }
    let outcome = ptoc_analysis::instantiate(&unit.modules, entry.id, &roomy(&session.target), bindings);
    outcome.result.map(|i| vec![(i, entry.id, bindings.clone())]).ok_or(Failed)
}

/// The target with memories that nothing is too large for. One that it has not stays away.
fn roomy(target: &Target) -> Target {
    let there = Loc::ALL.into_iter().filter(|&l| target.capacity(l) > 0);
    there.fold(target.clone(), |t, l| t.with_capacity(l, 1 << 40))
}

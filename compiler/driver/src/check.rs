//! The check of a kernel or program: the language, all passes, and what units in memory can do.

use crate::backend;
use crate::calls;
use crate::launch::{Plan, failing, refuted, undecided};
use crate::session::{CompilationUnit, EntryPoint, RepairOrigin, Session, Waiting};
use crate::unwritten::Unwritten;
use ptoc_analysis::Instance;
use ptoc_diagnostics::{Code, Diagnostic, Severity, Span, codes};
use ptoc_interp::cost::BlockCost;
use ptoc_ir::tile::{CheckData, CheckId, Kernel, Op, Stmt};
use ptoc_placement::MemoryMap;
use ptoc_syntax::ast::Name;
use std::collections::HashSet;

/// How far a check came.
#[derive(Debug)]
pub enum Checked {
    /// To the end, and this is what was found.
    Whole(Whole),
    /// It depends on something that is not known.
    Partly,
}

/// What a kernel takes, or each launch of a program.
#[derive(Debug, Default)]
pub struct Whole {
    /// The memories.
    pub maps: Vec<MemoryMap>,
    /// By the target's model of time, if it has one.
    pub costs: Vec<BlockCost>,
}

/// Checks a kernel or program with the session's definitions and its own defaults: types, placement, initialisation,
/// and what units in memory can do. Everything that is wrong is among the session's diagnostics.
pub fn check_entry(session: &mut Session, unit: &CompilationUnit, entry: &EntryPoint<'_>) -> Checked {
    // What was found before is not of this entry, and does not change what is found in it.
    let before = std::mem::take(&mut session.diagnostics);
    let checked = check_alone(session, unit, entry);
    let found = std::mem::replace(&mut session.diagnostics, before);
    session.diagnostics.extend(found.iter().cloned());
    checked
}

fn check_alone(session: &mut Session, unit: &CompilationUnit, entry: &EntryPoint<'_>) -> Checked {
    let checked = check_language(session, unit, entry);
    if !backend::default_of(&session.target).capabilities().limits || session.diagnostics.has_errors() {
        return checked;
    }
    let Checked::Whole(found) = checked else {
        refused_at_any_size(session, unit, entry);
        return checked;
    };
    let mut whole = check_units(session, unit, entry, &[]);
    let optional = optional(entry);
    if whole && !optional.is_empty() && !session.diagnostics.has_errors() {
        whole = check_units(session, unit, entry, &optional);
    }
    if whole { Checked::Whole(found) } else { Checked::Partly }
}

/// Tensor arguments that a launch may leave out.
fn optional(entry: &EntryPoint<'_>) -> Vec<Name> {
    entry.tensors().filter(|p| p.default.is_some()).map(|p| p.name.name.clone()).collect()
}

/// Compiles for the units of the target, as a launch that gives these optional arguments would. `false` if a number is
/// missing for that, which is said.
fn check_units(session: &mut Session, unit: &CompilationUnit, entry: &EntryPoint<'_>, given: &[Name]) -> bool {
    // What was found before is no matter here, and would be said twice.
    let before = std::mem::take(&mut session.diagnostics);
    let plan = Plan::without_arrays(session, unit, entry, given);
    let found = std::mem::replace(&mut session.diagnostics, before);
    match plan {
        Ok(plan) => {
            match backend::default_of(&session.target).check(session, unit, &plan) {
                Ok(advice) => session.diagnostics.extend(advice),
                Err(d) => session.diagnostics.extend([*d]),
            }
            true
        }
        Err(_) => {
            for mut d in found.into_sorted().into_iter().filter(Diagnostic::is_error) {
                d.message = format!("`{}` was not compiled for the units: {}", entry.item.name.name, d.message);
                d.severity = Severity::Note;
                session.diagnostics.push(d);
            }
            false
        }
    }
}

/// Sizes in place of those that are not given, where a kernel cannot be read without any: few, some, many.
const STAND_INS: [i64; 3] = [3, 48, 4112];

/// Says why the units refuse the kernel, or one that the program launches, if they do whatever sizes are given: without
/// any, or with all that are tried in their place.
fn refused_at_any_size(session: &mut Session, unit: &CompilationUnit, entry: &EntryPoint<'_>) {
    let backend = backend::default_of(&session.target);
    let mut refused = |stand_in: Option<i64>| {
        let kernels = with_sizes(session, unit, entry, stand_in);
        let told = kernels.iter().find_map(|kernel| backend.refuses_at_any_size(&session.target, kernel));
        (kernels.is_empty(), told)
    };
    let found = match refused(None) {
        (false, told) => told,
        (true, _) => {
            let all: Option<Vec<Box<Diagnostic>>> = STAND_INS.into_iter().map(|n| refused(Some(n)).1).collect();
            let same = |all: &Vec<Box<Diagnostic>>| {
                all.windows(2).all(|w| (w[0].code, w[0].span, &w[0].message) == (w[1].code, w[1].span, &w[1].message))
            };
            all.filter(same).and_then(|all| all.into_iter().next())
        }
    };
    session.diagnostics.extend(found.map(|d| *d));
}

/// The kernel, or those that the program launches, with `stand_in` for each size that is not given; none if it cannot
/// be read so. Without a memory the target asks for no sizes.
fn with_sizes(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    stand_in: Option<i64>,
) -> Vec<Kernel> {
    let before = std::mem::take(&mut session.diagnostics);
    let device = session.target.device.take();
    let bindings = session.bindings(entry, unit).map(|mut bindings| {
        if let Some(n) = stand_in {
            for dim in entry.dimensions(unit) {
                bindings.dims.entry(dim.name.clone()).or_insert(n);
            }
            bindings.fixed = bindings.dims.clone();
        }
        bindings
    });
    let kernels: Vec<Kernel> = match bindings {
        Ok(bindings) if entry.program => {
            let program = session.instantiate_program(unit, entry.id, &bindings, Waiting::IsNote);
            program.map_or_else(Vec::new, |p| p.steps.into_iter().map(|s| s.instance.kernel).collect())
        }
        Ok(bindings) => {
            let instance = session.instantiate(unit, entry.id, &bindings, Waiting::IsNote);
            instance.map(|i| i.kernel).into_iter().collect()
        }
        Err(_) => Vec::new(),
    };
    (session.diagnostics, session.target.device) = (before, device);
    kernels
}

/// Everything but what units in memory can do.
fn check_language(session: &mut Session, unit: &CompilationUnit, entry: &EntryPoint<'_>) -> Checked {
    if let Some(name) = entry.missing_static(&session.definitions) {
        let kernel = &entry.item.name.name;
        let mut d = Diagnostic::note(
            codes::MISSING_STATIC,
            name.span,
            format!("`{kernel}` was not checked: `{}` has no default", name.name),
        );
        d.severity = Severity::Note;
        session
            .diagnostics
            .push(d.with_label("needs a value").with_help(format!("give it one: `-D {}=..`", name.name)));
        return Checked::Partly;
    }
    let Ok(mut bindings) = session.bindings(entry, unit) else { return Checked::Partly };
    // A dimension that is given is the same for every launch that is meant.
    bindings.fixed = bindings.dims.clone();
    if entry.program {
        let Some(program) = session.instantiate_program(unit, entry.id, &bindings, Waiting::IsNote) else {
            return Checked::Partly;
        };
        let mut found = Whole::default();
        let mut unwritten = Unwritten::new(&program);
        // Kernels with what was said of them: launches of one kernel are checked once.
        let mut known: Vec<(Kernel, Vec<Diagnostic>)> = Vec::new();
        session.diagnostics.extend(failing(&program.order));
        for step in program.steps {
            if let Some(d) = refuted(&step) {
                session.diagnostics.push(if step.undecided { undecided(d) } else { d });
            }
            let launch = unwritten.of(&step);
            if let Some((_, told)) = known.iter().find(|(kernel, _)| *kernel == step.instance.kernel) {
                unwritten.launched(session, &launch, told);
                continue;
            }
            let kernel = step.instance.kernel.clone();
            unproved(&step.instance.kernel, session);
            let origin = RepairOrigin { unit, kernel: step.kernel, bindings: &step.bindings };
            let before = std::mem::take(&mut session.diagnostics);
            prepare(session, step.instance, &origin, &mut found);
            let told = std::mem::replace(&mut session.diagnostics, before);
            let told: Vec<Diagnostic> = told.iter().cloned().collect();
            unwritten.launched(session, &launch, &told);
            session.diagnostics.extend(told.iter().cloned());
            known.push((kernel, told));
        }
        return Checked::Whole(found);
    }
    // What the launch may leave out is absent here; then everything is given, and what is new is said.
    let optional = optional(entry);
    let first = session.instantiate(unit, entry.id, &bindings, Waiting::IsNote);
    if first.is_some() && !optional.is_empty() {
        let mut given = bindings.clone();
        given.given = optional;
        if let Some(instance) = session.instantiate(unit, entry.id, &given, Waiting::IsNote) {
            // What it takes is that of the launch without them.
            let origin = RepairOrigin { unit, kernel: entry.id, bindings: &given };
            prepare(session, instance, &origin, &mut Whole::default());
        }
    }
    match first {
        Some(instance) => {
            unproved(&instance.kernel, session);
            let mut found = Whole::default();
            prepare(session, instance, &RepairOrigin { unit, kernel: entry.id, bindings: &bindings }, &mut found);
            Checked::Whole(found)
        }
        None => Checked::Partly,
    }
}

/// All passes, the map of what they placed, and what a block of it costs.
fn prepare(session: &mut Session, instance: Instance, origin: &RepairOrigin<'_>, found: &mut Whole) {
    let debug = instance.debug;
    let Some(prepared) = session.prepare(instance.kernel, &debug, origin) else { return };
    if !session.diagnostics.has_errors()
        && let Some(d) = backend::default_of(&session.target).refuses(&prepared)
    {
        session.diagnostics.push(debug.called_from(*d));
    }
    let kernel = &prepared.placed.kernel;
    let target = ptoc_opt::fragments::seen_by(kernel, &session.target);
    let mut map = MemoryMap::new(kernel, &prepared.placed.placement, &target);
    map.calls = calls::of(&map, &debug);
    map.registers = ptoc_opt::fragments::tile_registers(kernel, &target);
    found.maps.push(map);
    found.costs.extend(target.pipes.time.as_ref().map(|times| BlockCost::new(kernel, times)));
}

/// What the checker could not prove is a warning; the kernel tests it while it runs.
fn unproved(kernel: &Kernel, session: &mut Session) {
    // Addresses are decided for each iteration by a pass, which says the errors when its turn comes.
    let mut kernel = kernel.clone();
    let wrong = ptoc_placement::addresses::settle(&mut kernel, &session.target);
    let mut needed = HashSet::default();
    tests(&kernel.prologue, &mut needed);
    tests(&kernel.body, &mut needed);
    let about = |d: &Diagnostic, span: Span| d.span.is_some_and(|s| s.contains(span) || span.contains(s));
    // What was said of the order of blocks, or of threads, is why these windows, shapes and indices are not proved.
    let bounds = [codes::VIEW_OUT_OF_BOUNDS, codes::INDEX_OUT_OF_BOUNDS];
    let order = |d: &&Diagnostic| bounds.contains(&d.code) && !d.fixes.is_empty();
    let orders: Vec<Diagnostic> = session.diagnostics.iter().filter(order).cloned().collect();
    let told = |span: Span| wrong.iter().chain(&orders).any(|d| about(d, span));
    let needed = |(id, c): &(CheckId, &CheckData)| needed.contains(id) && !told(c.span);
    let asked: HashSet<(Code, Span)> = kernel.checks.iter().filter(needed).map(|(_, c)| (c.code, c.span)).collect();
    for (_, check) in kernel.checks.iter().filter(needed) {
        let same = |code| asked.contains(&(code, check.span));
        let what = match check.code {
            // One address is one question.
            codes::ADDRESS_MISALIGNED if same(codes::ADDRESS_OUT_OF_RANGE) => continue,
            codes::ADDRESS_OUT_OF_RANGE if same(codes::ADDRESS_MISALIGNED) => {
                "this address is aligned, and the tile fits its memory there"
            }
            codes::INDEX_OUT_OF_BOUNDS => "this index is inside its extent",
            codes::VIEW_OUT_OF_BOUNDS => "this window lies inside what it is taken from",
            codes::SHAPES_DIFFER => "these valid shapes are equal",
            codes::EXCEEDS_CAPACITY => "what is valid fits the tile",
            codes::LAYOUT_CONDITION => "the sizes fit this layout operation",
            codes::ADDRESS_MISALIGNED => "this address is aligned",
            codes::ADDRESS_OUT_OF_RANGE => "the tile fits its memory at this address",
            // `where` and `assert` are meant to be decided when the kernel runs.
            _ => continue,
        };
        let message = match check.message.split_once(": {0}").and_then(|(needs, _)| needs.split_once(" needs ")) {
            Some((operation, needs)) if check.code == codes::LAYOUT_CONDITION => {
                format!("ptoc could not prove what {operation} needs: {needs}")
            }
            _ => format!("ptoc could not prove that {what}"),
        };
        let d =
            Diagnostic::warning(check.code, check.span, message).with_label("tested when the kernel runs").with_note(
                "the kernel may be right: this says how far the proof got, and only a failed test stops a launch",
            );
        let d = match &check.help {
            Some(help) if [codes::SHAPES_DIFFER, codes::LAYOUT_CONDITION].contains(&check.code) => {
                d.with_help(help.clone())
            }
            _ if check.code == codes::INDEX_OUT_OF_BOUNDS => d.with_help(PROVABLE_INDEX),
            _ => d,
        };
        session.diagnostics.push(d);
    }
}

/// What proves an index.
const PROVABLE_INDEX: &str = "proofs follow loops (`for j in 0..N`), conditions around the access (`if j < N`), \
     remainders (`j % N` with `where N > 0`), and what `where` says of dimensions and scalars; they do not know what \
     data hold";

/// The checks that the statements of a region make.
fn tests(region: &[Stmt], out: &mut HashSet<CheckId>) {
    for stmt in region {
        match &stmt.op {
            Op::Check { check, .. } => {
                out.insert(*check);
            }
            op => ptoc_placement::access::regions(op).into_iter().for_each(|r| tests(r, out)),
        }
    }
}

//! What is said of it.

use super::accesses::{AccessKind, AccessedElements, TensorAccess};
use super::cover::Why;
use super::nests::{Meets, Nested};
use super::space::KernelIndex;
use super::trial::{Clash, Hole, Meeting, Sizes, TrialOutcome, Use, element_name};
use super::{Doubt, Gap, Shown};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::scalar;
use ptoc_ir::tile::{CheckData, Kernel, Op, Operand, Stmt, TensorData, TensorDir, TensorId, ViewRef};
use ptoc_isa::{AtomicOp, Target};
use rustc_hash::FxHashMap;

/// Numbers and names of one kind that a message lists.
const NAMED: usize = 16;

/// A diagnostic for each tensor of which blocks share elements, or may.
pub(super) fn races(code: &KernelIndex<'_>, target: &Target, doubts: &[Doubt<'_>], shown: &[Shown]) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    let written = code.kernel.tensors.iter().filter(|(id, _)| super::accesses::is_watched(code.kernel, *id));
    let found = firsts(shown, |outcome| &outcome.clashes, |c| c.tensor);
    let mut all = Stores::default();
    stores(&code.kernel.body, &mut all);
    for (id, data) in written {
        if let Some((launch, clash)) = found.get(&id) {
            out.push(race(code.kernel, target, &all, launch, clash));
        } else if let Some(doubt) = doubts.iter().find(|d| d.tensor == id && !data.disjoint) {
            out.push(doubted(code.kernel, doubt));
        }
    }
    out
}

/// The first launch that shows something of a tensor, and what.
fn firsts<T>(
    shown: &[Shown],
    of: impl Fn(&TrialOutcome) -> &Vec<T>,
    tensor: impl Fn(&T) -> TensorId,
) -> FxHashMap<TensorId, (&Shown, &T)> {
    let mut out = FxHashMap::default();
    for launch in shown {
        for one in of(&launch.outcome) {
            out.entry(tensor(one)).or_insert((launch, one));
        }
    }
    out
}

fn race(kernel: &Kernel, target: &Target, stores: &Stores, launch: &Shown, clash: &Clash) -> Diagnostic {
    let Clash { tensor, element, first, second } = clash;
    let name = &kernel.tensors[*tensor].name;
    let place = element_name(name, element);
    let both = first.kind == AccessKind::Write && second.kind == AccessKind::Write;
    let (store, other) = blamed(first, second);
    let message = match both {
        true => format!("two blocks write the same elements of `{name}`"),
        false => format!("a block {} elements of `{name}` that another block {}", verb(store.kind), verb(other.kind)),
    };
    let (one, two) = (block(kernel, &first.block), block(kernel, &second.block));
    let mut d = Diagnostic::error(codes::BLOCK_RACE, store.span, message);
    d = match both && first.span == second.span {
        true => d.with_label(format!("{one} and {two} both write {place}")),
        false => d
            .with_label(format!("{} {} {place}", block(kernel, &store.block), verb(store.kind)))
            .with_secondary(other.span, format!("{} {} it", block(kernel, &other.block), verb(other.kind))),
    };
    let sizes = sizes(kernel, &launch.sizes);
    let blocks = grid(kernel, &launch.outcome.grid);
    d = d.with_note(match sizes.is_empty() {
        true => format!("the grid has {blocks}"),
        false => format!("so it is in a launch with {sizes}, which makes {blocks}"),
    });
    d = d.with_note(match (store.kind, other.kind) {
        (AccessKind::Atomic, _) => {
            "blocks run in any order and at the same time: whether the old value or a new one is read is not defined"
        }
        _ => "blocks run in any order and at the same time: which value stays is not defined",
    });
    repairs(kernel, target, stores, clash, d)
}

/// What would mend it.
fn repairs(kernel: &Kernel, target: &Target, stores: &Stores, clash: &Clash, mut d: Diagnostic) -> Diagnostic {
    let Clash { tensor, first, second, .. } = clash;
    let data = &kernel.tensors[*tensor];
    let differ: Vec<&str> = kernel
        .grid
        .iter()
        .enumerate()
        .filter(|(n, _)| first.block.get(*n) != second.block.get(*n))
        .map(|(_, g)| g.name.as_str())
        .collect();
    let names = listed(&differ);
    let (store, other) = blamed(first, second);
    let both = first.kind == AccessKind::Write && second.kind == AccessKind::Write;
    let in_place = other.kind == AccessKind::Read && is_in_place(kernel, *tensor, store, other);
    if let Some(&instr) = stores.get(&store.span).filter(|_| both && first.span == second.span || in_place) {
        let takes = ptoc_isa::check_atomic(target, instr, AtomicOp::Add, data.dtype).is_none();
        if takes {
            let name = instr.get().name;
            let inout = match data.dir {
                TensorDir::InOut => String::new(),
                _ => format!(", with `{}` declared `inout` and zero at first", data.name),
            };
            let alone = match in_place {
                true => format!(" of what is added alone, without reading `{}`", data.name),
                false => String::new(),
            };
            d = d
                .with_help(format!("if the blocks' values are to be added: `{name}(.., atomic = true)`{alone}{inout}"));
        }
    }
    d = d.with_help(format!("leave {names} out of the grid, and loop over it in the block"));
    match (store.kind, other.kind) {
        (AccessKind::Write, AccessKind::Write) => {
            d.with_help(format!("or let the window that is written depend on {names}"))
        }
        (AccessKind::Atomic, _) => {
            if is_element(&kernel.body, other.span) {
                d = d.with_help(format!("or {READ_ATOMICALLY}"));
            }
            d.with_help("or read another tensor, or make two kernels of it and launch one after the other")
        }
        _ => d.with_help("or write to another tensor, or make two kernels of it and launch one after the other"),
    }
}

/// How an element is read that others update.
const READ_ATOMICALLY: &str = "read it by an atomic update too: `atomic_add(.., 0)` gives the value at that moment";

/// Whether one element is read there.
fn is_element(region: &[Stmt], span: Span) -> bool {
    region
        .iter()
        .any(|s| matches!(s.op, Op::Load { .. }) && s.span == span || s.op.regions().any(|r| is_element(r, span)))
}

/// The use to blame, and the other one: a store rather than an update, an update rather than a read.
fn blamed<'u>(first: &'u Use, second: &'u Use) -> (&'u Use, &'u Use) {
    let rank = |u: &Use| match u.kind {
        AccessKind::Write => 2,
        AccessKind::Atomic => 1,
        AccessKind::Read => 0,
    };
    // Of two stores the later one.
    if rank(second) >= rank(first) { (second, first) } else { (first, second) }
}

/// Whether a block stores the very window that it has read, as a sum in place does.
fn is_in_place(kernel: &Kernel, tensor: TensorId, store: &Use, read: &Use) -> bool {
    fn window(region: &[Stmt], tensor: TensorId, span: Span) -> Option<&ViewRef> {
        region.iter().find_map(|s| match &s.op {
            Op::Inst(inst) if s.span == span => inst.operands.iter().find_map(|o| match o {
                Operand::View(view) if view.tensor == tensor => Some(view),
                _ => None,
            }),
            op => op.regions().find_map(|r| window(r, tensor, span)),
        })
    }
    let of = |u: &Use| window(&kernel.body, tensor, u.span);
    of(store).is_some() && of(store) == of(read)
}

/// Instructions that store to tensors, by their places.
type Stores = FxHashMap<Span, ptoc_isa::InstrId>;

fn stores(region: &[Stmt], out: &mut Stores) {
    for s in region {
        if let Op::Inst(inst) = &s.op
            && inst.attrs.atomic.is_none()
            && (inst.instr.get().sem == ptoc_isa::Sem::Store || inst.instr.get().sem.scatters())
        {
            out.entry(s.span).or_insert(inst.instr);
        }
        s.op.regions().for_each(|r| stores(r, out));
    }
}

fn doubted(kernel: &Kernel, doubt: &Doubt<'_>) -> Diagnostic {
    let name = &kernel.tensors[doubt.tensor].name;
    let dims: Vec<&str> = doubt.dims.iter().map(|&d| kernel.grid[d].name.as_str()).collect();
    let names = listed(&dims);
    let [store, other] = &doubt.accesses;
    let what = match other.kind {
        AccessKind::Write => "write different elements of",
        _ => "use different elements of",
    };
    let rule = match store.kind {
        AccessKind::Atomic => {
            "two blocks that use one element, where one of them updates it and the other reads it plainly, race"
        }
        _ => "two blocks that use one element, where one of them writes it, race",
    };
    let mut d = Diagnostic::warning(
        codes::BLOCKS_NOT_PROVED,
        store.span,
        format!("ptoc could not prove that blocks that differ in {names} {what} `{name}`"),
    )
    .with_label(format!("{} by one block", participle(store.kind)));
    if other.span != store.span {
        d = d.with_secondary(other.span, format!("{} by another one", participle(other.kind)));
    }
    d = d.with_note(format!("the kernel may be right: {LIMIT}"));
    d = d.with_note(format!("{rule}; `--backend interp` finds that (PA-1013)"));
    if store.kind == AccessKind::Atomic && matches!(other.place, AccessedElements::Element(_)) {
        d = d.with_help(READ_ATOMICALLY);
    }
    noted(d, doubt.spent).with_help(format!(
        "if they are different for a reason, say it: `#[disjoint({name}, \"why\")]` before the kernel"
    ))
}

/// Says that a proof was not finished.
fn noted(d: Diagnostic, spent: bool) -> Diagnostic {
    match spent {
        true => d.with_note(
            "the proofs of this kernel took all their steps: of fewer stores, loops and conditions more is proved",
        ),
        false => d,
    }
}

/// What a proof about elements is made of.
const LIMIT: &str = "proofs follow grids, loops, tiles, conditions, sums and products of indices, and what `where` \
     says of dimensions; they do not know what data hold";

fn verb(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Read => "reads",
        AccessKind::Write => "writes",
        AccessKind::Atomic => "updates",
    }
}

fn participle(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Read => "read",
        AccessKind::Write => "written",
        AccessKind::Atomic => "updated",
    }
}

/// `block (i = 0, j = 1)`
fn block(kernel: &Kernel, at: &[i64]) -> String {
    let all = kernel.grid.iter().zip(at).map(|(g, n)| format!("{} = {n}", g.name));
    format!("block ({})", some(all, at.len()))
}

/// The numbers that a launch has been tried with.
pub(super) fn sizes(kernel: &Kernel, sizes: &Sizes) -> String {
    let dims = kernel.dims.values().zip(&sizes.dims).map(|(d, n)| format!("{} = {n}", d.name));
    let scalars =
        kernel.scalars.iter().zip(&sizes.scalars).filter_map(|(s, bits)| {
            Some(format!("{} = {}", s.name, scalar::display(kernel.values[s.value].ty, (*bits)?)))
        });
    let given = sizes.scalars.iter().filter(|s| s.is_some()).count();
    some(dims.chain(scalars), sizes.dims.len() + given)
}

/// The first of many, with commas, and how many more there are.
fn some(all: impl Iterator<Item = String>, of: usize) -> String {
    let mut named: Vec<String> = all.take(NAMED).collect();
    if of > NAMED {
        named.push(format!("and {} more", of - NAMED));
    }
    named.join(", ")
}

/// `2 x 1 blocks`
fn grid(kernel: &Kernel, extents: &[i64]) -> String {
    let _ = kernel;
    match extents {
        all if all.iter().all(|n| *n == 1) => "one block".to_owned(),
        all if all.len() > NAMED => format!("{} blocks", all.iter().fold(1i64, |n, e| n.saturating_mul(*e))),
        all => format!("{} blocks", all.iter().map(i64::to_string).collect::<Vec<_>>().join(" x ")),
    }
}

/// The names of what, in words.
fn listed(names: &[&str]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let mut names: Vec<String> = names.iter().take(NAMED).map(|n| format!("`{n}`")).collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    match &names[..] {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

/// A diagnostic for each `copy` whose elements meet, or may.
pub(super) fn nests(code: &KernelIndex<'_>, doubts: &[Nested<'_>], shown: &[Shown]) -> Vec<Diagnostic> {
    let mut out: Vec<Diagnostic> = Vec::new();
    for launch in shown {
        for meeting in &launch.outcome.meetings {
            if !out.iter().any(|d| d.span == Some(meeting.span)) {
                out.push(met(code.kernel, launch, meeting));
            }
        }
    }
    for doubt in doubts {
        let span = doubt.write.span;
        if out.iter().any(|d| d.span == Some(span)) {
            continue;
        }
        let name = &code.kernel.tensors[doubt.tensor].name;
        let what = match doubt.meets {
            Meets::Twice => format!("this writes every element of `{name}` once"),
            Meets::Sides => format!("what this reads of `{name}` and what it writes have no element in common"),
        };
        let d = Diagnostic::warning(codes::COPY_NOT_PROVED, span, format!("not proved: {what}"))
            .with_label("its elements are moved in no particular order")
            .with_note("`--backend interp` ends a run in which elements meet (PA-1072)");
        let d = noted(d, doubt.spent).with_help(match doubt.meets {
            Meets::Twice => {
                format!("if they are different for a reason, say it: `#[disjoint({name}, \"why\")]` before the kernel")
            }
            Meets::Sides => "copy through a tile: load the whole source before anything is stored".to_owned(),
        });
        out.push(d);
    }
    out
}

fn met(kernel: &Kernel, launch: &Shown, meeting: &Meeting) -> Diagnostic {
    let message = match meeting.twice {
        true => "this writes one element twice",
        false => "this reads elements that it writes itself",
    };
    let how = if meeting.twice { "written twice" } else { "both read and written" };
    let d = Diagnostic::error(codes::COPY_OVERLAP, meeting.span, message)
        .with_label(format!("{} is {how}", meeting.element));
    let sizes = sizes(kernel, &launch.sizes);
    let at = if kernel.grid.is_empty() { String::new() } else { format!(" in {}", block(kernel, &meeting.block)) };
    let d = match (sizes.is_empty(), at.is_empty()) {
        (true, true) => d,
        (true, false) => d.with_note(format!("so it is{at}")),
        (false, _) => d.with_note(format!("so it is in a launch with {sizes}{at}")),
    };
    let d = d.with_note("elements are moved in no particular order: which value stays is not defined");
    match meeting.twice {
        true => d.with_help("copy to a layout in which every coordinate has a place of its own"),
        false => d
            .with_help("copy to another tensor")
            .with_help("or load all that is read into a tile first, and store it then"),
    }
}

/// A warning for each `out` tensor that has elements that nothing writes, or may have.
pub(super) fn holes(
    code: &KernelIndex<'_>,
    accesses: &[TensorAccess<'_>],
    gaps: &[Gap],
    shown: &[Shown],
    skipped: &dyn Fn(TensorId) -> bool,
) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    let found = firsts(shown, |outcome| &outcome.holes, |h| h.tensor);
    let gaps: FxHashMap<TensorId, &Gap> = gaps.iter().map(|g| (g.tensor, g)).collect();
    let mut stores = FxHashMap::default();
    for a in accesses.iter().filter(|a| a.kind == AccessKind::Write) {
        stores.entry(a.tensor).or_insert(a.span);
    }
    for (id, data) in code.kernel.tensors.iter().filter(|(id, t)| t.dir == TensorDir::Out && !skipped(*id)) {
        let store = stores.get(&id).copied();
        let gap = gaps.get(&id).copied();
        if let Some((launch, hole)) = found.get(&id) {
            out.push(hole_shown(code.kernel, launch, hole, gap.and_then(|g| g.span).or(store)));
        } else if let Some(gap) = gap.filter(|g| !is_told(code.kernel, g)) {
            out.push(hole_doubted(code.kernel, gap, data));
        }
    }
    out
}

/// A window that is not proved to lie inside its tensor is a question by itself, which the checker asks: where it lies
/// is not known.
fn is_told(kernel: &Kernel, gap: &Gap) -> bool {
    let open = |c: &CheckData| c.code == codes::VIEW_OUT_OF_BOUNDS && gap.span.is_some_and(|s| s.contains(c.span));
    gap.why == Why::Windows && kernel.checks.values().any(open)
}

fn hole_shown(kernel: &Kernel, launch: &Shown, hole: &Hole, store: Option<Span>) -> Diagnostic {
    let data = &kernel.tensors[hole.tensor];
    let name = &data.name;
    let place = element_name(name, &hole.first);
    let (sizes, blocks) = (sizes(kernel, &launch.sizes), grid(kernel, &launch.outcome.grid));
    let case = if sizes.is_empty() { String::new() } else { format!("with {sizes}, ") };
    let leave = if launch.outcome.grid.iter().all(|n| *n == 1) { "leaves" } else { "leave" };
    let note = match hole.count {
        1 => format!("{case}{blocks} {leave} {place} as it was"),
        n => format!("{case}{blocks} {leave} {n} of {} elements as they were, first {place}", hole.all),
    };
    let message = format!("not every element of `{name}` is written");
    let d = match store {
        Some(span) => Diagnostic::warning(codes::UNWRITTEN_ELEMENTS, span, message)
            .with_label(format!("does not write {place}"))
            .with_secondary(data.span, "declared `out`: it has no values before the launch"),
        None => Diagnostic::warning(codes::UNWRITTEN_ELEMENTS, data.span, message).with_label("nothing stores to it"),
    };
    d.with_note(note)
        .with_help("let the blocks and their windows cover the whole tensor")
        .with_help(format!("if what is not written is to keep its old value, declare `{name}` `inout`"))
}

fn hole_doubted(kernel: &Kernel, gap: &Gap, data: &TensorData) -> Diagnostic {
    let name = &data.name;
    let _ = kernel;
    let message = format!("ptoc could not prove that every element of `{name}` is written");
    let mut d = Diagnostic::warning(codes::COVER_NOT_PROVED, gap.span.unwrap_or(data.span), message);
    d = match gap.why {
        Why::Data => d.with_label("the data say which elements are written here"),
        Why::Branch(span) => {
            // The head of it is enough.
            let head = Span::new(span.file, span.start, span.start + 2);
            d.with_label("not written in every case").with_secondary(head, "under this condition")
        }
        Why::Skipped => d.with_label("written here, if nothing jumps over it"),
        Why::Windows => d.with_label("writes a part"),
    };
    d = d
        .with_secondary(data.span, "declared `out`: it has no values before the launch")
        .with_note(format!("the kernel may be right: {LIMIT}"));
    noted(d, gap.spent)
        .with_help(format!("if what is not written is to keep its old value, declare `{name}` `inout`"))
        .with_help(format!(
            "if the data decide which block writes what, say why that is right: `#[disjoint({name}, \"why\")]` before \
            the kernel"
        ))
}

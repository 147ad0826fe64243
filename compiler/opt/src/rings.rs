//! Kernels with roles, rings and flags as the sequence that they mean: what a tensor core's schedule is made from.
//! Roles are walked in program order, flags order nothing then, and a stage of a ring that an iteration fills and reads
//! is a tile of that iteration.
//!
//! A ring is an array of tiles. Its producer writes the element that one counter names, its consumer reads what another
//! names; both count alike, so in each iteration they are the same element. That is proved from their definitions
//! ([`counters`]).

mod copies;
mod counters;

use crate::contraction::{From, moved, product, rounding};
use counters::Scalars;
use ptoc_ir::tile::{
    AddrKind, Const, For, If, Inst, InstAttrs, Kernel, Label, Op, Operand, Region, Stmt, Tile, TileRef, Ty, Value,
    ValueData, Var,
};
use ptoc_isa::{CmpOp, lookup};
use ptoc_placement::access::{AccessMode, tile_accesses};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// The kernel as such a sequence; itself, where there is nothing of that, or more than is understood.
pub fn straight(kernel: &Kernel) -> Cow<'_, Kernel> {
    let rings = kernel.tiles.values().any(|t| t.count > 1 || matches!(t.addr, AddrKind::Fixed(_)));
    if kernel.roles.is_empty() && !rings && !switches(&kernel.body) {
        return Cow::Borrowed(kernel);
    }
    sequence(kernel).map_or(Cow::Borrowed(kernel), Cow::Owned)
}

fn sequence(kernel: &Kernel) -> Option<Kernel> {
    // Where iterations end early, counters need not go together.
    if leaves(&kernel.body) {
        return None;
    }
    let mut out = kernel.clone();
    out.body = flat(&kernel.body);
    out.roles.clear();
    for tile in kernel.tiles.keys() {
        let data = &mut out.tiles[tile];
        let shared = kernel.aliases.iter().any(|(a, b)| *a == tile || *b == tile);
        // The planner refuses fixed addresses that meet while both are wanted.
        if data.count == 1 && !shared && matches!(data.addr, AddrKind::Fixed(_)) {
            data.addr = AddrKind::Auto;
        }
    }
    let arrays: Vec<Tile> = kernel.tiles.keys().filter(|t| kernel.tiles[*t].count > 1).collect();
    let mut body = std::mem::take(&mut out.body);
    unswitch(&mut out, &mut body);
    out.body = body;
    start_at_zero(&mut out);
    for tile in arrays {
        forward(&mut out, tile);
    }
    share_moves(&mut out);
    remove_dead(&mut out);
    Some(out)
}

/// Without flags and the borders of roles.
fn flat(region: &Region) -> Region {
    let mut out = Vec::new();
    for stmt in region {
        let mut stmt = stmt.clone();
        match &mut stmt.op {
            Op::Sync(_) => continue,
            Op::Scope(scope) => {
                out.extend(flat(&scope.body));
                continue;
            }
            Op::For(f) => f.body = flat(&f.body),
            Op::If(i) => (i.then, i.els) = (flat(&i.then), flat(&i.els)),
            Op::While(w) => (w.head, w.body) = (flat(&w.head), flat(&w.body)),
            _ => {}
        }
        // Nothing but flags was in it.
        let empty = stmt.op.regions().next().is_some() && stmt.op.regions().all(|r| r.iter().all(|s| s.op.is_pure()));
        if !empty || matches!(stmt.op, Op::While(_)) {
            out.push(stmt);
        }
    }
    out
}

fn leaves(region: &Region) -> bool {
    region.iter().any(|s| matches!(s.op, Op::Leave(_) | Op::Break(_) | Op::Continue(_)) || s.op.regions().any(leaves))
}

/// Where a statement is: the numbers of statements and of regions in them, from the outside.
type Path = Vec<usize>;

/// A statement's references to a tile.
#[derive(Clone)]
struct Access {
    path: Path,
    mode: AccessMode,
    element: Option<Value>,
}

/// Makes an array single tiles: wherever a region writes one element first, and touches that alone behind it, the
/// element is a tile of the region.
fn forward(kernel: &mut Kernel, tile: Tile) {
    let shared = kernel.aliases.iter().any(|(a, b)| *a == tile || *b == tile);
    let Some(homes) = homes(kernel, tile).filter(|_| !shared) else { return };
    let count = kernel.tiles[tile].count;
    let data = &mut kernel.tiles[tile];
    (data.count, data.addr) = (1, AddrKind::Auto);
    let data = data.clone();
    kernel.pins.retain(|(t, _)| *t != tile);
    for (n, home) in homes.iter().enumerate() {
        let own = if n == 0 { tile } else { kernel.tiles.push(data.clone()) };
        let Some(region) = region_mut(&mut kernel.body, home) else { continue };
        each(region, &mut |stmt| {
            stmt.op.for_each_tile_mut(&mut |t| {
                if t.tile == tile {
                    (t.tile, t.element) = (own, None);
                }
            });
        });
        if own != tile {
            region.insert(0, Stmt { op: Op::Alloc { tile: own }, span: data.span });
        }
        // As many stages as the ring has are under way.
        let loops = (0..home.len()).rev().filter(|n| n % 2 == 1).map(|n| &home[..n]);
        for at in loops {
            if let Some(Op::For(f)) = statement(&mut kernel.body, at).map(|s| &mut s.op) {
                f.stages = f.stages.max(count);
                break;
            }
        }
    }
}

/// The regions of such an array.
fn homes(kernel: &Kernel, tile: Tile) -> Option<Vec<Path>> {
    let mut found = Vec::new();
    accesses(kernel, &kernel.body, &[], tile, &mut found);
    let scalars = Scalars::new(kernel);
    let mut homes = Vec::new();
    let mut rest = &found[..];
    while let Some((write, behind)) = rest.split_first() {
        let (_, region) = write.path.split_last()?;
        let inside = behind.iter().take_while(|a| a.path.starts_with(region)).count();
        let (own, others) = behind.split_at(inside);
        let same = |a: &Access| match (a.element, write.element) {
            (Some(a), Some(b)) => scalars.same(a, b, region),
            (a, b) => a == b,
        };
        let here = own.iter().all(|a| a.path >= write.path && same(a));
        if write.mode != AccessMode::Write || !here || homes.iter().any(|h: &Path| region.starts_with(h)) {
            return common_home(kernel, &found).map(|home| vec![home]);
        }
        homes.push(region.to_vec());
        rest = others;
    }
    Some(homes)
}

/// Whether a statement, or one in it, reads or writes a tile.
fn touches(kernel: &Kernel, stmt: &Stmt, tile: Tile) -> bool {
    let mut found = Vec::new();
    accesses(kernel, std::slice::from_ref(stmt), &[], tile, &mut found);
    !found.is_empty()
}

/// The one region of such an array whose first write is no statement of the region itself: in every iteration of it a
/// tile is written on every way to a read.
fn common_home(kernel: &Kernel, found: &[Access]) -> Option<Path> {
    let first = found.first()?;
    let shared = |a: &Path, b: &Path| a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let all = found.iter().map(|a| shared(&a.path, &first.path)).min()?;
    // A region's path ends with the number of the region, so it has an even number of parts.
    let region = first.path.get(..all / 2 * 2)?.to_vec();
    let scalars = Scalars::new(kernel);
    let same = |a: &Access| match (a.element, first.element) {
        (Some(a), Some(b)) => scalars.same(a, b, &region),
        (a, b) => a == b,
    };
    (found.iter().all(same) && written_first(found, &region)).then_some(region)
}

/// Whether these accesses of a region write on every way to what they read.
fn written_first(found: &[Access], region: &[usize]) -> bool {
    written(found, region, false).is_some()
}

/// Whether a tile is written behind a region, where it is (or is not) in front of it; `None` if it may be read before.
fn written(found: &[Access], region: &[usize], mut before: bool) -> Option<bool> {
    let own: Vec<&Access> = found.iter().filter(|a| a.path.starts_with(region)).collect();
    let mut n = 0;
    while n < own.len() {
        let at = own[n].path[region.len()];
        let all: Vec<Access> =
            own[n..].iter().take_while(|a| a.path[region.len()] == at).map(|a| (*a).clone()).collect();
        n += all.len();
        let stmt = [region, &[at]].concat();
        if all[0].path == stmt {
            // An instruction reads before it writes.
            if all.iter().any(|a| a.mode == AccessMode::Read) && !before {
                return None;
            }
            before |= all.iter().any(|a| a.mode == AccessMode::Write);
            continue;
        }
        let [first, second] = [0, 1].map(|r| written(&all, &[&stmt[..], &[r]].concat(), before));
        // Of a loop the body may not run, and a condition may have one arm that writes.
        before = before || (first? && second?);
    }
    Some(before)
}

fn accesses(kernel: &Kernel, region: &[Stmt], at: &[usize], tile: Tile, out: &mut Vec<Access>) {
    for (n, stmt) in region.iter().enumerate() {
        let path = [at, &[n]].concat();
        if stmt.op.regions().next().is_none() {
            let own = tile_accesses(kernel, stmt).into_iter().filter(|(_, t)| t.tile == tile);
            out.extend(own.map(|(mode, t)| Access { path: path.clone(), mode, element: t.element }));
        }
        for (r, inner) in stmt.op.regions().enumerate() {
            accesses(kernel, inner, &[&path[..], &[r]].concat(), tile, out);
        }
    }
}

fn each(region: &mut Region, f: &mut dyn FnMut(&mut Stmt)) {
    for stmt in region {
        f(stmt);
        for inner in regions_mut(&mut stmt.op) {
            each(inner, f);
        }
    }
}

fn regions_mut(op: &mut Op) -> Vec<&mut Region> {
    match op {
        Op::For(f) => vec![&mut f.body],
        Op::If(i) => vec![&mut i.then, &mut i.els],
        Op::While(w) => vec![&mut w.head, &mut w.body],
        Op::Scope(s) => vec![&mut s.body],
        _ => Vec::new(),
    }
}

/// The statement at a place.
fn statement<'r>(region: &'r mut Region, at: &[usize]) -> Option<&'r mut Stmt> {
    let (n, rest) = at.split_first()?;
    let stmt = region.get_mut(*n)?;
    match rest {
        [] => Some(stmt),
        [r, rest @ ..] => statement(regions_mut(&mut stmt.op).into_iter().nth(*r)?, rest),
    }
}

/// The region at a place: the whole, if that is nothing.
fn region_mut<'r>(body: &'r mut Region, at: &[usize]) -> Option<&'r mut Region> {
    match at.split_last() {
        None => Some(body),
        Some((r, of)) => regions_mut(&mut statement(body, of)?.op).into_iter().nth(*r),
    }
}

/// `for k { .. if c {..} else {..} }` as two loops, where c is the same in all iterations and products depend on it.
fn unswitch(kernel: &mut Kernel, region: &mut Region) {
    for stmt in region {
        for inner in regions_mut(&mut stmt.op) {
            unswitch(kernel, inner);
        }
        let Op::For(f) = &stmt.op else { continue };
        let Some(at) = invariant_choice(f) else { continue };
        let Op::If(i) = &f.body[at].op else { continue };
        let with = |arm: &Region, label: Label| {
            let body = f.body[..at].iter().chain(arm).chain(&f.body[at + 1..]).cloned().collect();
            vec![Stmt { op: Op::For(Box::new(For { label, body, ..(**f).clone() })), span: stmt.span }]
        };
        let other = kernel.labels.push(kernel.labels[f.label]);
        let (then, mut els) = (with(&i.then, f.label), with(&i.els, other));
        if copies::renamed(&mut els, &mut kernel.values).is_some() {
            stmt.op = Op::If(Box::new(If { cond: i.cond, then, els }));
        }
    }
}

/// Whether a loop has products under a condition that is the same in all of its iterations.
fn switches(region: &Region) -> bool {
    region.iter().any(|stmt| match &stmt.op {
        Op::For(f) => invariant_choice(f).is_some() || switches(&f.body),
        op => op.regions().any(switches),
    })
}

/// The condition of products in a loop that does not depend on the iteration.
fn invariant_choice(f: &For) -> Option<usize> {
    let inside: FxHashSet<Value> = f.body.iter().filter_map(|s| s.op.def()).chain([f.index]).collect();
    f.body.iter().position(|s| matches!(&s.op, Op::If(i) if !inside.contains(&i.cond)) && multiplies(s))
}

fn multiplies(stmt: &Stmt) -> bool {
    product(&stmt.op).is_some() || stmt.op.regions().flatten().any(multiplies)
}

/// Several moves of a window that is loaded once to operands of one kind as one.
fn share_moves(kernel: &mut Kernel) {
    let mut body = std::mem::take(&mut kernel.body);
    let mut all = FxHashMap::default();
    references(&mut body, &mut all);
    share_in(kernel, &mut body, &all);
    kernel.body = body;
}

/// How often tiles are named.
fn references(region: &mut Region, out: &mut FxHashMap<Tile, usize>) {
    each(region, &mut |stmt| stmt.op.for_each_tile_mut(&mut |t| *out.entry(t.tile).or_default() += 1));
}

fn share_in(kernel: &Kernel, region: &mut Region, all: &FxHashMap<Tile, usize>) {
    for stmt in region.iter_mut() {
        regions_mut(&mut stmt.op).into_iter().for_each(|r| share_in(kernel, r, all));
    }
    let mut n = 0;
    while n < region.len() {
        let twin = moved(&region[n].op).and_then(|(to, from)| {
            let earlier = region[..n].iter().filter_map(|s| moved(&s.op)).find(|(other, same)| {
                let [a, b] = [to, *other].map(|t| &kernel.tiles[t.tile].ty);
                *same == from && a == b && (to.rows, to.cols, to.valid) == (other.rows, other.cols, other.valid)
            });
            earlier.map(|(first, _)| (to, first, from))
        });
        if let Some((to, first, from)) = twin {
            let mut here = FxHashMap::default();
            references(region, &mut here);
            let touched = |tile: Tile| {
                let writes = |s: &Stmt| {
                    let writes = |(mode, t): &(AccessMode, TileRef)| *mode == AccessMode::Write && t.tile == tile;
                    s.op.regions().next().is_some() || tile_accesses(kernel, s).iter().any(writes)
                };
                region.iter().filter(|s| writes(s)).count()
            };
            // Each is written once here, and nowhere deeper; the second is only seen here.
            if [to, first, from].iter().all(|t| touched(t.tile) == 1) && here.get(&to.tile) == all.get(&to.tile) {
                region.remove(n);
                each(region, &mut |stmt| {
                    stmt.op.for_each_tile_mut(&mut |t| {
                        if t.tile == to.tile {
                            t.tile = first.tile;
                        }
                    });
                });
                continue;
            }
        }
        n += 1;
    }
}

/// Leaves out scalars and variables that nothing with an effect needs.
fn remove_dead(kernel: &mut Kernel) {
    let (mut live, mut vars) = (FxHashSet::default(), FxHashSet::default());
    loop {
        let before = (live.len(), vars.len());
        needed(&kernel.body, &mut live, &mut vars);
        if (live.len(), vars.len()) == before {
            break;
        }
    }
    sweep(&mut kernel.body, &live, &vars);
}

fn needed(region: &Region, live: &mut FxHashSet<Value>, vars: &mut FxHashSet<Var>) {
    for stmt in region.iter().rev() {
        stmt.op.regions().for_each(|r| needed(r, live, vars));
        let wanted = match &stmt.op {
            Op::Get { dst, var } => {
                if live.contains(dst) {
                    vars.insert(*var);
                }
                false
            }
            Op::Set { var, .. } => vars.contains(var),
            op if op.is_pure() => op.def().is_some_and(|v| live.contains(&v)),
            _ => true,
        };
        if wanted {
            stmt.op.for_each_use(&mut |v| {
                live.insert(v);
            });
        }
    }
}

fn sweep(region: &mut Region, live: &FxHashSet<Value>, vars: &FxHashSet<Var>) {
    for stmt in region.iter_mut() {
        regions_mut(&mut stmt.op).into_iter().for_each(|r| sweep(r, live, vars));
    }
    region.retain(|stmt| match &stmt.op {
        Op::For(f) => !f.body.is_empty(),
        Op::Get { dst, .. } => live.contains(dst),
        Op::Set { var, .. } => vars.contains(var),
        op if op.is_pure() => op.def().is_some_and(|v| live.contains(&v)),
        _ => true,
    });
}

/// `for k { if k.first { acc = a b } else { acc += a b } }` as a loop that adds to zeros.
fn start_at_zero(kernel: &mut Kernel) {
    let mut body = std::mem::take(&mut kernel.body);
    zeros_in(kernel, &mut body);
    kernel.body = body;
}

fn zeros_in(kernel: &mut Kernel, region: &mut Region) {
    let mut n = 0;
    while n < region.len() {
        for inner in regions_mut(&mut region[n].op) {
            zeros_in(kernel, inner);
        }
        let span = region[n].span;
        while let Op::For(f) = &mut region[n].op
            && let Some(acc) = (0..f.body.len()).find_map(|at| adds_after_first(kernel, f, at))
        {
            let dtype = kernel.tiles[acc.tile].ty.dtype;
            let value = ValueData { ty: Ty::D(dtype), name: None, span };
            let dst = kernel.values.push(value);
            let zero = Stmt { op: Op::Const { dst, value: Const { ty: Ty::D(dtype), bits: 0 } }, span };
            let operands = vec![Operand::Tile(acc), Operand::Scalar(dst)];
            let instr = lookup("TEXPANDS").expect("an instruction of the table");
            let fill = Inst { instr, operands, scratch: Vec::new(), attrs: InstAttrs::default() };
            region.splice(n..n, [zero, Stmt { op: Op::Inst(Box::new(fill)), span }]);
            n += 2;
        }
        n += 1;
    }
}

/// Rewrites the product of such a loop that stands at this statement; its accumulator.
fn adds_after_first(kernel: &Kernel, f: &mut For, at: usize) -> Option<TileRef> {
    // Of the prologue: the body is in other hands.
    let scalars = Scalars::new(kernel);
    let number = |v: Value, body: &Region| -> Option<u64> {
        let local = body.iter().find(|s| s.op.def() == Some(v)).map(|s| &s.op);
        match local.or(scalars.defs.get(&v).copied()) {
            Some(Op::Const { value, .. }) => Some(value.bits),
            _ => None,
        }
    };
    let Op::If(i) = &f.body[at].op else { return None };
    let If { cond, then, els } = &**i;
    let test = f.body.iter().find_map(|s| match &s.op {
        Op::Compare { dst, op: CmpOp::Eq, a, b } if dst == cond => Some((*a, *b)),
        _ => None,
    })?;
    let other = if test.0 == f.index { test.1 } else { test.0 };
    let is_first = (test.0 == f.index || test.1 == f.index)
        && (other == f.lo || number(other, &f.body).is_some_and(|n| number(f.lo, &f.body) == Some(n)));
    let [first] = &then[..] else { return None };
    let [later] = &els[..] else { return None };
    let (p, From::Zero) = product(&first.op)? else { return None };
    let (q, From::Acc) = product(&later.op)? else { return None };
    let inside: FxHashSet<Value> = f.body.iter().filter_map(|s| s.op.def()).chain([f.index]).collect();
    let fixed = [p.d.valid.0, p.d.valid.1].iter().all(|v| !inside.contains(v));
    let alone = f.body.iter().enumerate().all(|(n, s)| n == at || !touches(kernel, s, p.d.tile));
    if !is_first || p != q || rounding(&first.op) != rounding(&later.op) || !fixed || !alone {
        return None;
    }
    let later = later.clone();
    f.body[at] = later;
    Some(p.d)
}

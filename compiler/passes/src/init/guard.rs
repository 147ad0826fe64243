//! Tiles that may be read before they are written: a mask of written elements, and a check in front of the read.
//!
//! A path on which nothing writes a tile is a warning (E0502). Where it is taken, machine code must not go on with what another block
//! has left there. So a tile of which the doubt is left has a variable with a bit for each element of its array: cleared where the tile's life
//! begins, set behind each write, tested before each read (PA-1001). Parts of a tile that are unwritten are not told apart: the interpreter and
//! the sanitizer do.

use super::how_to_start;
use crate::access::{Access, tile_accesses};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{
    AddrKind, CheckData, CheckId, Const, Kernel, Op, Region, Stmt, Tile, TileRef, Ty, Value, ValueData, Var, VarData,
};
use ptoc_isa::{BinOp, CmpOp, Loc};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Bits of a mask that are used.
const BITS: u32 = 62;

/// Tiles whose reads can be guarded: their bytes are their own, and no roles share them.
pub(super) fn guardable(kernel: &Kernel) -> FxHashSet<Tile> {
    if !kernel.roles.is_empty() {
        return FxHashSet::default();
    }
    let mut out: FxHashSet<Tile> =
        kernel.tiles.iter().filter(|(_, d)| d.count <= BITS && d.addr != AddrKind::Dynamic).map(|(t, _)| t).collect();
    kernel.aliases.iter().for_each(|(a, b)| {
        out.remove(a);
        out.remove(b);
    });
    // Addresses of the author's: those with a byte in common, and all of a memory where some are bound while the kernel runs.
    let dynamic: Vec<Loc> = kernel.tiles.values().filter(|d| d.addr == AddrKind::Dynamic).map(|d| d.ty.loc).collect();
    let mut fixed: Vec<(Loc, u64, Tile)> = Vec::new();
    for (tile, data) in &kernel.tiles {
        if let AddrKind::Fixed(at) = &data.addr {
            fixed.extend(at.iter().map(|at| (data.ty.loc, *at, tile)));
            if dynamic.contains(&data.ty.loc) {
                out.remove(&tile);
            }
        }
    }
    fixed.sort_unstable_by_key(|(loc, at, tile)| (*loc as usize, *at, *tile));
    let mut last: Option<(Loc, u64, Tile)> = None;
    for (loc, at, tile) in fixed {
        let end = at.saturating_add(kernel.tiles[tile].ty.bytes());
        match last {
            Some((of, until, other)) if of == loc && at < until => {
                if other != tile {
                    out.remove(&tile);
                    out.remove(&other);
                }
                if end > until {
                    last = Some((loc, end, tile));
                }
            }
            _ => last = Some((loc, end, tile)),
        }
    }
    out
}

/// Adds the checks that the doubts among `diagnostics` want.
pub fn guard(kernel: &mut Kernel, diagnostics: &[Diagnostic]) {
    if !diagnostics.iter().any(|d| d.code == codes::MAYBE_UNINITIALISED) {
        return;
    }
    let mut declared: FxHashMap<Span, Vec<Tile>> = FxHashMap::default();
    for tile in guardable(kernel) {
        declared.entry(kernel.tiles[tile].span).or_default().push(tile);
    }
    let mut doubts: BTreeMap<Tile, Vec<Span>> = BTreeMap::new();
    for d in diagnostics.iter().filter(|d| d.code == codes::MAYBE_UNINITIALISED) {
        for tile in d.labels.iter().flat_map(|l| declared.get(&l.span).into_iter().flatten()) {
            doubts.entry(*tile).or_default().extend(d.span);
        }
    }
    if doubts.is_empty() {
        return;
    }
    let mut guards = Guards::new(kernel, doubts);
    let mut body = std::mem::take(&mut guards.kernel.body);
    guards.region(&mut body);
    guards.kernel.body = body;
    let fresh = std::mem::take(&mut guards.fresh);
    kernel.prologue.splice(0..0, fresh);
}

/// One tile that is guarded.
struct Mask {
    var: Var,
    check: CheckId,
}

struct Guards<'k> {
    kernel: &'k mut Kernel,
    masks: FxHashMap<Tile, Mask>,
    zero: Value,
    one: Value,
    fresh: Region,
}

impl<'k> Guards<'k> {
    fn new(kernel: &'k mut Kernel, doubts: BTreeMap<Tile, Vec<Span>>) -> Guards<'k> {
        let mut fresh = Region::new();
        let [zero, one] = [0, 1].map(|n| {
            let dst = kernel.values.push(ValueData { ty: Ty::Index, name: None, span: Span::default() });
            fresh.push(Stmt { op: Op::Const { dst, value: Const::index(n) }, span: Span::default() });
            dst
        });
        let mut masks = FxHashMap::default();
        for (tile, reads) in doubts {
            let var = kernel.vars.push(VarData { name: "written".into(), ty: Ty::Index });
            let (name, help) = (kernel.tiles[tile].name.clone(), how_to_start(kernel, super::Object::Tile(tile)));
            let message = format!("tile `{name}` is read here, and nothing has written it on the way");
            let span = reads.first().copied().unwrap_or(kernel.tiles[tile].span);
            let data = CheckData { code: codes::TRAP_POISON_READ_TILE, message, span, help: Some(help) };
            masks.insert(tile, Mask { var, check: kernel.checks.push(data) });
        }
        Guards { kernel, masks, zero, one, fresh }
    }

    fn region(&mut self, region: &mut Region) {
        let mut out = Region::with_capacity(region.len());
        for mut stmt in std::mem::take(region) {
            let span = stmt.span;
            let touched: Vec<(Access, TileRef)> = tile_accesses(self.kernel, &stmt)
                .into_iter()
                .filter(|(_, t)| self.masks.contains_key(&t.tile))
                .collect();
            for (_, t) in touched.iter().filter(|(a, _)| *a == Access::Read) {
                self.test(t, span, &mut out);
            }
            match &mut stmt.op {
                Op::For(f) => self.region(&mut f.body),
                Op::If(i) => {
                    self.region(&mut i.then);
                    self.region(&mut i.els);
                }
                Op::While(w) => {
                    self.region(&mut w.head);
                    self.region(&mut w.body);
                }
                Op::Scope(s) => self.region(&mut s.body),
                _ => {}
            }
            let begins = match stmt.op {
                Op::Alloc { tile } => self.masks.get(&tile).map(|m| m.var),
                _ => None,
            };
            out.push(stmt);
            if let Some(var) = begins {
                out.push(Stmt { op: Op::Set { var, value: self.zero }, span });
            }
            for (_, t) in touched.iter().filter(|(a, _)| *a == Access::Write) {
                let var = self.masks[&t.tile].var;
                let (mask, bit) = (self.get(var, span, &mut out), self.bit(t, span, &mut out));
                let value = self.binary(BinOp::Or, mask, bit, span, &mut out);
                out.push(Stmt { op: Op::Set { var, value }, span });
            }
        }
        *region = out;
    }

    /// The check that the element of the array has been written.
    fn test(&mut self, t: &TileRef, span: Span, out: &mut Region) {
        let Mask { var, check } = self.masks[&t.tile];
        let (mask, bit) = (self.get(var, span, out), self.bit(t, span, out));
        let own = self.binary(BinOp::And, mask, bit, span, out);
        let cond = self.kernel.values.push(ValueData { ty: Ty::BOOL, name: None, span });
        out.push(Stmt { op: Op::Compare { dst: cond, op: CmpOp::Ne, a: own, b: self.zero }, span });
        out.push(Stmt { op: Op::Check { cond, check, args: Vec::new() }, span });
    }

    fn bit(&mut self, t: &TileRef, span: Span, out: &mut Region) -> Value {
        match t.element {
            None => self.one,
            Some(e) => self.binary(BinOp::Shl, self.one, e, span, out),
        }
    }

    fn get(&mut self, var: Var, span: Span, out: &mut Region) -> Value {
        let dst = self.kernel.values.push(ValueData { ty: Ty::Index, name: None, span });
        out.push(Stmt { op: Op::Get { dst, var }, span });
        dst
    }

    fn binary(&mut self, op: BinOp, a: Value, b: Value, span: Span, out: &mut Region) -> Value {
        let dst = self.kernel.values.push(ValueData { ty: Ty::Index, name: None, span });
        out.push(Stmt { op: Op::Binary { dst, op, a, b }, span });
        dst
    }
}

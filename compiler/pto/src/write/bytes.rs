//! Tiles of level 3 are bytes of their memory: those of one type at one address are one tile, whatever was in it first.

use super::accumulators::regions;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{AddrKind, Const, Kernel, Op, Region, Stmt, Tile, TileRef, Ty, Value, ValueData};
use rustc_hash::FxHashMap;

/// The kernel with one tile for all of one type at one address, if there are several.
pub(super) fn shared(kernel: &Kernel) -> Option<Kernel> {
    let mut same: FxHashMap<Tile, (Tile, usize)> = FxHashMap::default();
    for tile in kernel.tiles.keys() {
        same.extend(first(kernel, tile).map(|first| (tile, first)));
    }
    if same.is_empty() {
        return None;
    }
    let mut kernel = kernel.clone();
    let mut numbers = FxHashMap::default();
    for (_, n) in same.values().filter(|(_, n)| *n > 0) {
        numbers.entry(*n).or_insert_with(|| number(&mut kernel, *n));
    }
    let mut body = std::mem::take(&mut kernel.body);
    region(&mut body, &|t| {
        if let Some((first, n)) = same.get(&t.tile) {
            t.tile = *first;
            t.element = t.element.or(numbers.get(n).copied());
        }
    });
    kernel.body = body;
    Some(kernel)
}

/// The tile or the element of an array that has the bytes of a tile, and its type: an array before a tile alone, else
/// what is declared first.
fn first(kernel: &Kernel, tile: Tile) -> Option<(Tile, usize)> {
    let data = &kernel.tiles[tile];
    let AddrKind::Fixed(at) = &data.addr else { return None };
    let places = |other: Tile| match &kernel.tiles[other].addr {
        AddrKind::Fixed(places) if kernel.tiles[other].ty == data.ty => places.as_slice(),
        _ => &[],
    };
    let whole = |other: &Tile| places(*other) == at;
    let own = kernel.tiles.keys().take_while(|t| *t != tile);
    if data.count > 1 {
        return own.filter(|t| kernel.tiles[*t].count > 1).find(whole).map(|t| (t, 0));
    }
    let element = |t: Tile| places(t).iter().position(|p| Some(p) == at.first()).map(|n| (t, n));
    let arrays = kernel.tiles.keys().filter(|t| kernel.tiles[*t].count > 1);
    arrays.filter_map(element).next().or_else(|| own.filter(whole).map(|t| (t, 0)).next())
}

/// A constant in the prologue.
fn number(kernel: &mut Kernel, n: usize) -> Value {
    let span: Span = kernel.span;
    let dst = kernel.values.push(ValueData { ty: Ty::Index, name: None, span });
    kernel.prologue.insert(0, Stmt { op: Op::Const { dst, value: Const { ty: Ty::Index, bits: n as u64 } }, span });
    dst
}

fn region(statements: &mut Region, change: &dyn Fn(&mut TileRef)) {
    for stmt in statements {
        stmt.op.for_each_tile_mut(&mut |t| change(t));
        regions(&mut stmt.op).into_iter().for_each(|r| region(r, change));
    }
}

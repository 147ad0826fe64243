//! Instructions whose destination has bytes of one of their sources. Elaboration sees it where both are the same window
//! of the same tile; here it is a question of addresses.

use super::contents::Bytes;
use super::places::Places;
use super::states::ByteState;
use super::walk::ByteInterpreter;
use super::window::TouchedPart;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{AddrKind, Inst, Operand, Stmt, Tile};
use ptoc_isa::{InstrId, Sem};

/// A destination and a source with common bytes.
#[derive(Clone, Debug)]
pub(super) struct OwnSource {
    pub(super) instr: InstrId,
    pub(super) span: Span,
    /// The operand's position in the table.
    pub(super) source: usize,
    /// Destination and source.
    pub(super) tiles: (Tile, Tile),
    /// In the memory: first of the common bytes, one past the last. `None`: it is not known whether there are any.
    pub(super) bytes: Option<Bytes>,
}

impl ByteInterpreter<'_> {
    /// Notes the sources of an instruction that share bytes with its destination, wherever both may be.
    pub(super) fn sources(&mut self, stmt: &Stmt, inst: &Inst, state: &ByteState) {
        let stepwise =
            matches!(inst.instr.get().sem, Sem::Map(_) | Sem::Binary(_) | Sem::Unary(_) | Sem::BinaryScalar(_));
        let tile = |(n, o): (usize, &'_ Operand)| match o {
            Operand::Tile(t) => Some((n, *t)),
            _ => None,
        };
        let mut tiles = inst.operands.iter().enumerate().filter_map(tile);
        let Some((0, dst)) = tiles.next().filter(|_| stepwise && self.quiet == 0) else { return };
        let placed = |t: Tile| self.kernel.tiles[t].addr != AddrKind::Auto;
        let sources: Vec<_> =
            tiles.filter(|(_, t)| t.tile == dst.tile || (placed(t.tile) && placed(dst.tile))).collect();
        for (source, r) in sources {
            let (d, s) = (self.places(state, &dst, TouchedPart::Valid), self.places(state, &r, TouchedPart::Valid));
            let bytes = common(&d, &s);
            if bytes.is_none() && !self.may_meet((dst.tile, &d), (r.tile, &s)) {
                continue;
            }
            let tiles = (dst.tile, r.tile);
            let next = self.own_sources.len();
            let at = *self.own_ids.entry((stmt.span, source, tiles)).or_insert(next);
            match self.own_sources.get_mut(at) {
                Some(old) => old.bytes = old.bytes.or(bytes),
                None => {
                    self.own_sources.push(OwnSource { instr: inst.instr, span: stmt.span, source, tiles, bytes });
                }
            }
        }
    }

    /// Whether two windows may have a byte in common. Of elements and addresses that the launch decides, what their
    /// numbers exclude is excluded.
    fn may_meet(&mut self, (a, x): (Tile, &Places), (b, y): (Tile, &Places)) -> bool {
        let (same, size) = (a == b, self.kernel.tiles[a].ty.bytes().max(self.kernel.tiles[b].ty.bytes()));
        // Elements of one array that are never the same one.
        let starts = self.keys.starts(x.key, y.key);
        let elements = same && self.kernel.tiles[a].addr != AddrKind::Dynamic;
        let never = elements && starts.is_some_and(|(m, n)| self.numbers.differ(m, n));
        let addresses =
            self.kernel.tiles[a].addr == AddrKind::Dynamic && self.kernel.tiles[b].addr == AddrKind::Dynamic;
        if addresses && starts.is_some_and(|(m, n)| m.base == n.base && m.offset.abs_diff(n.offset) >= size) {
            return false;
        }
        let apart = same && self.keys.apart(x.key, y.key, &mut self.numbers);
        let common = |p: &[Bytes], q: &[Bytes]| p.iter().any(|p| q.iter().any(|q| p.0.max(q.0) < p.1.min(q.1)));
        for (n, (m, p)) in x.most().iter().enumerate() {
            for (k, (l, q)) in y.most().iter().enumerate() {
                let one = same && !x.anywhere && !y.anywhere && x.all[n] == y.all[k];
                if m == l && common(p, q) && !(one && (never || apart)) {
                    return true;
                }
            }
        }
        false
    }
}

/// Bytes that both have where all is valid that can be, whichever of their places they are at. `None` if some places
/// have none in common, or are not known.
fn common(a: &Places, b: &Places) -> Option<Bytes> {
    let mut found: Option<Bytes> = None;
    for (m, x) in a.full()? {
        for (n, y) in b.full()? {
            let meets = x.iter().flat_map(|p| y.iter().map(move |q| (p.0.max(q.0), p.1.min(q.1))));
            let all = meets.filter(|(start, end)| m == n && start < end);
            let (start, end) = all.reduce(|p, q| (p.0.min(q.0), p.1.max(q.1)))?;
            let (low, high) = found.unwrap_or((start, end));
            found = Some((low.min(start), high.max(end)));
        }
    }
    found
}

//! Blocks of a mode of several axes that the end of one of them cuts, as 64 rows of a group of 3 heads. Such a block is
//! whole pieces of the axes before the last one, of which the first and the last are used in part. It moves by a loop
//! nest over these pieces, whose guards leave out what is before the block and behind it; so it is loaded, stored and
//! copied, and nothing else is done with it.

use super::copies::CopyEnd;
use super::{ElabResult, Elaborator};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::Value;
use ptoc_isa::BinOp;
use ptoc_layout::Tuple;
use ptoc_values::{Leaf, TileBlock, Val, View, WindowMap, WindowMode};

/// What a window with such a mode is as a value.
pub(crate) fn window_value(view: View) -> Val {
    match is_cut(&view.window) {
        true => Val::Cut(view.into()),
        false => Val::View(view.into()),
    }
}

/// Whether the end of an axis cuts a block of some mode.
pub(crate) fn is_cut(w: &WindowMap) -> bool {
    w.modes.iter().any(|m| m.skip.is_some())
}

impl Elaborator<'_> {
    /// Mode `k` becomes the pieces that the block has elements of.
    pub(crate) fn cut_mode(&mut self, w: &mut WindowMap, k: usize, (b, start): (&TileBlock, Value), span: Span) {
        let mut leaves: Vec<Leaf> = w.modes[k].tree.leaves().into_iter().cloned().collect();
        let Some(last) = leaves.pop() else { return };
        let one = self.idx(1);
        let piece = leaves.iter().map(|l| l.extent).collect::<Vec<_>>();
        let piece = piece.into_iter().fold(one, |n, extent| self.bin(BinOp::Mul, n, extent, span));
        let (first, skip) = (self.bin(BinOp::Div, start, piece, span), self.bin(BinOp::Rem, start, piece, span));
        self.advance(w, &last.by, first, span);
        // Up to the piece that the block ends in: from where blocks end it is seen that this is one of the last axis.
        let end = self.bin(BinOp::Add, start, b.len, span);
        let short = self.bin(BinOp::Sub, piece, one, span);
        let up = self.bin(BinOp::Add, end, short, span);
        let behind = self.bin(BinOp::Div, up, piece, span);
        let pieces = self.bin(BinOp::Sub, behind, first, span);
        self.facts.ge_const(pieces, 1);
        leaves.push(Leaf { extent: pieces, by: last.by });
        w.modes[k].tree = Tuple::Node(leaves.into_iter().map(Tuple::Leaf).collect());
        w.modes[k].skip = Some(skip);
    }

    /// Refuses a use of a window that knows nothing of pieces.
    pub(crate) fn not_cut(&mut self, w: &WindowMap, what: &str, at: Span) -> ElabResult<()> {
        if !is_cut(w) {
            return Ok(());
        }
        let message = format!("the end of an axis cuts these blocks, and {what}");
        let d = Diagnostic::error(codes::LAYOUT_DIVISIBILITY, at, message)
            .with_note("such a window is loaded, stored and copied")
            .with_help("choose a block that divides the axes of its mode, or that they divide");
        self.report(d)
    }

    /// Both sides of a copy with the same pieces: beside a block that is cut, a plain mode counts like it.
    pub(crate) fn in_pieces(
        &mut self,
        (dst, src): (&CopyEnd, &CopyEnd),
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<(WindowMap, WindowMap)> {
        let (mut d, mut s) = (dst.window().clone(), src.window().clone());
        for k in 0..d.modes.len() {
            let (to, from) = (d.modes[k].clone(), s.modes[k].clone());
            let fits = match (to.skip, from.skip) {
                (None, None) => true,
                (Some(_), None) => self.counts_like(&mut s, k, &to, span),
                (None, Some(_)) => self.counts_like(&mut d, k, &from, span),
                (Some(a), Some(b)) => a == b && self.same_axes(&to.tree, &from.tree),
            };
            if !fits {
                let message =
                    format!("`copy`: the end of an axis cuts the block of mode {k}, and the other side has other axes");
                let e = Diagnostic::error(codes::COPY_AXES, at.1, message)
                    .with_secondary(at.0, "the other side")
                    .with_help("load it, and store the tile: `let t = Vec(from); TSTORE(to, t);`");
                return self.report(e);
            }
        }
        Ok((d, s))
    }

    /// A mode of one axis gets those of `pattern`, with its place before the block.
    fn counts_like(&mut self, w: &mut WindowMap, k: usize, pattern: &WindowMode, span: Span) -> bool {
        let (Some(axis), Some(skip)) = (w.modes[k].plain().cloned(), pattern.skip) else { return false };
        let (one, zero) = (self.idx(1), self.idx(0));
        let mut step = one;
        let leaves: Vec<Leaf> = pattern.tree.leaves().into_iter().cloned().collect();
        let mut tree = Vec::new();
        for l in leaves {
            let by = axis.by.iter().map(|by| self.bin(BinOp::Mul, *by, step, span)).collect();
            tree.push(Tuple::Leaf(Leaf { extent: l.extent, by }));
            step = self.bin(BinOp::Mul, step, l.extent, span);
        }
        let back = self.bin(BinOp::Sub, zero, skip, span);
        self.advance(w, &axis.by, back, span);
        w.modes[k].tree = Tuple::Node(tree);
        w.modes[k].skip = Some(skip);
        true
    }

    fn same_axes(&self, a: &Tuple<Leaf>, b: &Tuple<Leaf>) -> bool {
        let extents = |t: &Tuple<Leaf>| t.leaves().into_iter().map(|l| l.extent).collect::<Vec<_>>();
        extents(a) == extents(b)
    }
}

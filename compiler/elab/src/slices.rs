//! Slices of a mode, `x[o .. o + n, _]`: from one number to another, which need not be constants.

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::Value;
use ptoc_isa::BinOp;
use ptoc_layout::Int;
use ptoc_values::{TileVal, Val, WindowMap, WindowMode, lengths};

/// Rows or columns that a tile has room for, at most, where their number is not known.
const MOST: u32 = 1 << 16;

impl Elaborator<'_> {
    /// The indices `lo .. hi` of a mode, which `out` begins with. `what` is the mode.
    pub(crate) fn slice_mode(
        &mut self,
        out: &mut WindowMap,
        mode: &WindowMode,
        (lo, hi): (Value, Value),
        what: &str,
        at: Span,
    ) -> ElabResult<()> {
        let Some(leaf) = mode.plain().cloned().filter(|_| out.pattern.is_none()) else {
            let message = format!("{what} has several axes: a range of it is no window");
            let d = Diagnostic::error(codes::RANK_MISMATCH, at, message)
                .with_label("a range of a grouped mode")
                .with_help("take ranges of the modes before they are grouped, or blocks, `x.tile(i, _)`");
            return self.report(d);
        };
        self.inside(mode.extent, (lo, hi), what, at)?;
        let extent = self.distance(lo, hi, at);
        self.facts.ge_const(extent, 0);
        if self.const_index(extent).is_none() {
            self.facts.le(extent, mode.extent, 0);
            // It ends inside, and so is no longer than what is left there.
            if let (Some(all), Some(before)) = (self.facts.max_of(mode.extent), self.facts.min_of(lo)) {
                self.facts.le_const(extent, all.saturating_sub(before).max(0));
            }
            self.no_longer(extent, (lo, hi));
        }
        let mut window = self.axis(extent, None, leaf.by.clone());
        // What is as long as the whole is as large.
        if extent == mode.extent {
            window.cap = mode.cap;
        }
        self.advance(out, &leaf.by, lo, at);
        out.modes.push(window);
        out.threads = None;
        Ok(())
    }

    /// The rows or columns of a tile that has room for a window: its extent, or the most that this can be.
    pub(crate) fn most_of(&mut self, extent: Value, at: Span, what: &str) -> ElabResult<u32> {
        let fixed = self.const_index(extent).is_some() || self.is_dimensional(extent) && !self.is_cut(extent);
        if let Some(most) = self.bound_of(extent).filter(|_| !fixed) {
            self.facts.le_const(extent, i64::from(most));
            return Ok(most);
        }
        if !fixed && self.bounded_by_sizes(extent, at, what) {
            return Err(ErrorReported);
        }
        let told = self.diags.len();
        let known = self.static_extent(&Val::Scalar(extent), at, what);
        for d in self.diags.split_off(told) {
            let plain = d.code == codes::BAD_EXTENT;
            self.diags.push(if plain { d } else { d.with_help(lengths::SAY_THE_MOST).with_help(lengths::BY_BLOCKS) });
        }
        known
    }

    /// Whether it is the lesser of a dimension and a number, `min(N, 8)`, or that and a constant.
    fn is_cut(&self, extent: Value) -> bool {
        let is_number = |v: Value| self.facts.number(v).is_some();
        match self.facts.definition(extent) {
            Some((BinOp::Min, a, b)) => is_number(a) || is_number(b),
            Some((BinOp::Add | BinOp::Sub, a, b)) if is_number(b) => self.is_cut(a),
            _ => false,
        }
    }

    /// The most that an extent can be, if that is a size for a tile.
    fn bound_of(&self, extent: Value) -> Option<u32> {
        let apart = match self.facts.definition(extent) {
            Some((BinOp::Sub, hi, lo)) => lengths::most_apart(&self.facts, lo, hi),
            _ => Vec::new(),
        };
        let apart = apart.into_iter().filter_map(|(v, c)| match v {
            Some(v) => self.facts.max_of(v)?.checked_add(c),
            None => Some(c),
        });
        let most = self.facts.max_of(extent).into_iter().chain(apart).min()?;
        u32::try_from(most.max(1)).ok().filter(|most| *most <= MOST)
    }

    /// Whether dimensions say how long it is at most, where no number does. Those that are known become constants of
    /// the instance, and this elaboration is thrown away; if none is, the check waits for one.
    fn bounded_by_sizes(&mut self, extent: Value, at: Span, what: &str) -> bool {
        let bounds = lengths::above(&self.facts, extent).into_iter();
        let bounds = bounds.filter(|v| self.const_index(*v).is_none() && self.is_dimensional(*v));
        let (known, unknown): (Vec<_>, Vec<_>) = bounds.partition(|v| self.known_index(*v).is_some());
        if known.is_empty() && !unknown.is_empty() {
            self.unbounded.get_or_insert(at);
        }
        let asked = if known.is_empty() { unknown.into_iter().take(1).collect() } else { known };
        // What it is now is of no matter.
        for v in &asked {
            let _ = self.static_int(&Val::Scalar(*v), at, what);
        }
        !asked.is_empty()
    }

    /// What `extent` is at most, the distance of these numbers.
    fn no_longer(&mut self, extent: Value, (lo, hi): (Value, Value)) {
        for (v, c) in lengths::most_apart(&self.facts, lo, hi) {
            match v {
                Some(v) if v == extent => {}
                Some(v) => self.facts.le(extent, v, c),
                None => self.facts.le_const(extent, c.max(0)),
            }
        }
    }

    /// `t[a .. b, _]`: rows or columns of a tile.
    pub(crate) fn slice_tile(
        &mut self,
        t: &TileVal,
        valid: (Value, Value),
        at: [(&Val, Span); 2],
        span: Span,
    ) -> ElabResult<Val> {
        let (zero, one) = (self.idx(0), self.idx(1));
        let origin = t.origin.unwrap_or((zero, zero));
        let (mut first, mut caps, mut extents) = ([origin.0, origin.1], [t.rows, t.cols], [valid.0, valid.1]);
        for (k, what) in ["the tile's rows", "the tile's columns"].into_iter().enumerate() {
            let (v, place) = at[k];
            let begin = match v {
                Val::Hole => continue,
                Val::Range(lo, hi) => {
                    let all = extents[k];
                    self.inside(all, (*lo, *hi), what, place)?;
                    extents[k] = self.distance(*lo, *hi, place);
                    if self.const_index(extents[k]).is_none() {
                        self.facts.ge_const(extents[k], 0);
                        self.facts.le(extents[k], all, 0);
                        self.no_longer(extents[k], (*lo, *hi));
                    }
                    caps[k] = match self.const_index(extents[k]) {
                        Some(0) => return self.no_elements(["rows", "columns"][k], place),
                        Some(_) => {
                            self.static_extent(&Val::Scalar(extents[k]), place, "the size of a slice of a tile")?
                        }
                        None => self.bound_of(extents[k]).map_or(caps[k], |most| most.min(caps[k])),
                    };
                    *lo
                }
                v => {
                    let i = self.index_of(v, place)?;
                    self.check_index(i, extents[k], what, place)?;
                    (caps[k], extents[k]) = (1, one);
                    i
                }
            };
            first[k] = self.bin(BinOp::Add, first[k], begin, span);
        }
        let (origin, valid) = (Some((first[0], first[1])), Some((extents[0], extents[1])));
        Ok(Val::Tile(TileVal { origin, rows: caps[0], cols: caps[1], valid, temp: false, ..*t }))
    }

    /// Refuses a window of constant length 0: there is no tile of it.
    pub(crate) fn no_elements<T>(&mut self, what: &str, at: Span) -> ElabResult<T> {
        let d = Diagnostic::error(codes::EMPTY_TILE, at, format!("this window is empty: it has no {what}"))
            .with_label(format!("no {what}"))
            .with_help("a range ends before its second number: row 3 alone is `3 .. 4`");
        self.report(d)
    }

    /// `0 <= lo <= hi <= extent`, proved or checked.
    fn inside(&mut self, extent: Value, (lo, hi): (Value, Value), what: &str, at: Span) -> ElabResult<()> {
        self.exact(lo, at)?;
        self.exact(hi, at)?;
        let zero = self.idx(0);
        if self.facts.min_of(lo).is_none_or(|least| least < 0) {
            let message = format!("{what}: the range begins at {{1}}");
            self.require_le(zero, lo, codes::VIEW_OUT_OF_BOUNDS, message, at)?;
        }
        if !matches!(self.int_distance(lo, hi), Some(Int::Const(0..))) {
            let message = format!("{what}: the range begins at {{0}}, and ends at {{1}}");
            self.require_le(lo, hi, codes::VIEW_OUT_OF_BOUNDS, message, at)?;
        }
        let message = format!("{what}: the range ends at {{0}}, the extent is {{1}}");
        self.require_le(hi, extent, codes::VIEW_OUT_OF_BOUNDS, message, at)
    }

    /// `hi - lo`, where that is a constant.
    pub fn constant_distance(&mut self, lo: Value, hi: Value) -> Option<i64> {
        self.int_distance(lo, hi)?.as_const()
    }

    fn int_distance(&mut self, lo: Value, hi: Value) -> Option<Int> {
        let (lo, hi) = (self.int_of(lo), self.int_of(hi));
        hi.sub(&lo).ok().map(|n| self.cx.normal(&n))
    }

    /// `hi - lo`, as simple as it is: `o + 8 - o` is 8.
    fn distance(&mut self, lo: Value, hi: Value, at: Span) -> Value {
        match self.int_distance(lo, hi) {
            Some(n) => self.value_of(&n, at),
            None => self.bin(BinOp::Sub, hi, lo, at),
        }
    }
}

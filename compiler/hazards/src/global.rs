//! Symbolic windows: parts of tensors in global memory, compared by how they are computed.
//!
//! Where a window starts is a polynomial in the scalars of the kernel. With the window's strides it falls into a row
//! and a column; windows of equal strides are apart if their rows or columns are. A loop's counter stays a symbol: what
//! was touched an iteration ago is rewritten in terms of the current one, so that `j * 128` becomes `j * 128 - 128`.

use super::bytes::Meet;
use super::code::{Def, HazardProgram};
use super::domain::{AffineValue, MAX, MIN};
use super::poly::{PolyInterval, constant, poly};
use super::state::HazardState;
use ptoc_ir::tile::{TensorId, Value, ViewRef};
use ptoc_isa::BinOp;

/// Beyond this distance what was touched earlier is only known to be further away.
const FAR: u32 = 6;

/// A part of a tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct TensorPart {
    pub(super) tensor: TensorId,
    /// Where; `None`: anywhere in it.
    place: Option<PartElements>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct PartElements {
    wide: Wide,
    /// In steps of the wide stride, and of the other one, which is 1.
    row: PolyInterval,
    col: PolyInterval,
    /// At most so many.
    rows: i64,
    cols: i64,
    /// At least so many are touched.
    least: (i64, i64),
    /// Iterations that have passed since.
    age: u32,
}

/// The stride that is not 1, which tells rows from columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Wide {
    Number(i64),
    Value(Value),
    /// There is none: elements are only numbered.
    None,
}

impl TensorPart {
    pub(super) fn anywhere(tensor: TensorId) -> TensorPart {
        TensorPart { tensor, place: None }
    }

    /// The window `view`, of at most `cap` rows and columns.
    pub(super) fn window(
        code: &HazardProgram,
        state: &HazardState,
        tensor: TensorId,
        view: &ViewRef,
        cap: Option<(u32, u32)>,
    ) -> TensorPart {
        let place = cap.and_then(|cap| {
            let &[s0, s1] = &view.strides[..] else { return None };
            let offset = under(code, offset(code, state, view.offset)?, &state.assumed)?;
            // One row, or one column of steps of 1, has no wide stride of its own.
            let (wide, flip) = match (constant(code, s0), constant(code, s1)) {
                (_, Some(1)) => (Some(s0).filter(|_| cap.0 > 1), false),
                (Some(1), _) => (Some(s1).filter(|_| cap.1 > 1), true),
                _ => return None,
            };
            let (wide, row, col) = match wide {
                Some(wide) => split(code, offset, wide)?,
                None => by_width(code, tensor, offset),
            };
            let &[valid_rows, valid_cols] = &view.shape[..] else { return None };
            // A window without rows or columns is none.
            let least = |v: Value, most: u32| constant(code, v).map_or(1, |n| n.clamp(1, i64::from(most)));
            let (rows, cols) = ((cap.0, least(valid_rows, cap.0)), (cap.1, least(valid_cols, cap.1)));
            let (rows, cols) = if flip { (cols, rows) } else { (rows, cols) };
            if let Wide::Number(n) = wide {
                // A row that goes on in the next one, or starts beyond its end.
                let start = col.bounds(code, state);
                let beyond = start.1.is_some_and(|last| last >= n) || start.0.is_some_and(|first| first + cols.1 > n);
                if beyond || n == 1 && cols.0 > 1 {
                    return None;
                }
            }
            Some(PartElements {
                wide,
                row,
                col,
                rows: i64::from(rows.0),
                cols: i64::from(cols.0),
                least: (rows.1, cols.1),
                age: 0,
            })
        });
        TensorPart { tensor, place }
    }

    /// One element.
    pub(super) fn element(code: &HazardProgram, state: &HazardState, tensor: TensorId, at: Value) -> TensorPart {
        let place = || {
            let (wide, row, col) = by_width(code, tensor, under(code, offset(code, state, at)?, &state.assumed)?);
            Some(PartElements { wide, row, col, rows: 1, cols: 1, least: (1, 1), age: 0 })
        };
        TensorPart { tensor, place: place() }
    }

    pub(super) fn meet(&self, other: &TensorPart) -> Meet {
        if self.tensor != other.tensor {
            return Meet::No;
        }
        let (Some(a), Some(b)) = (&self.place, &other.place) else { return Meet::Maybe };
        if a.wide != b.wide {
            return Meet::Maybe;
        }
        // Apart for certain, common for certain.
        let compared = |x: &PolyInterval, y: &PolyInterval, (nx, lx): (i64, i64), (ny, ly): (i64, i64)| {
            if x.terms() != y.terms() {
                return (false, false);
            }
            let low = if x.lo == MIN || y.hi == MAX { MIN } else { x.lo - y.hi };
            let high = if x.hi == MAX || y.lo == MIN { MAX } else { x.hi - y.lo };
            (low >= ny || high <= -nx, low > -lx && high < ly)
        };
        let rows = compared(&a.row, &b.row, (a.rows, a.least.0), (b.rows, b.least.0));
        let cols = compared(&a.col, &b.col, (a.cols, a.least.1), (b.cols, b.least.1));
        if rows.0 || cols.0 {
            Meet::No
        } else if rows.1 && cols.1 {
            Meet::Yes
        } else {
            Meet::Maybe
        }
    }

    /// The same seen from the next iteration of loop `l`; `None`: not known any more.
    pub(super) fn aged(&self, code: &HazardProgram, l: usize) -> TensorPart {
        let vague = TensorPart { tensor: self.tensor, place: None };
        let Some(place) = &self.place else { return vague };
        let counter = code.loops[l].counted.map(|c| c.index);
        let Some(row) = aged(code, l, counter, &place.row, place.age) else { return vague };
        let Some(col) = aged(code, l, counter, &place.col, place.age) else { return vague };
        let moved = row != place.row || col != place.col;
        let age = if moved { (place.age + 1).min(FAR + 1) } else { place.age };
        TensorPart { tensor: self.tensor, place: Some(PartElements { row, col, age, ..place.clone() }) }
    }

    /// The same after loop `l`.
    pub(super) fn after(&self, code: &HazardProgram, l: usize) -> TensorPart {
        let of = |p: &PolyInterval| p.symbols().any(|v| code.inside(v, l));
        match &self.place {
            Some(p) if !of(&p.row) && !of(&p.col) => self.clone(),
            _ => TensorPart { tensor: self.tensor, place: None },
        }
    }
}

/// The number of an element, with numbers for what changes only with loops that are taken step by step.
fn offset(code: &HazardProgram, state: &HazardState, v: Value) -> Option<PolyInterval> {
    let symbolic = poly(code, v, 0)?;
    let number = |s: Value| {
        let stepwise = code.home.get(&s).is_some_and(|&l| code.loops[l].stepwise);
        if stepwise { state.value(code, s).constant() } else { None }
    };
    if !symbolic.symbols().any(|s| number(s).is_some()) {
        return Some(symbolic);
    }
    let mut out = PolyInterval::number(0);
    for (symbols, n) in symbolic.terms() {
        let mut term = PolyInterval::number(*n);
        for &s in symbols {
            term = term.product(&number(s).map_or_else(|| PolyInterval::symbol(s), PolyInterval::number))?;
        }
        out = out.add(&term)?;
    }
    out.add(&symbolic.constants())
}

/// The number of an element of a tensor as its row and column, if it is a matrix.
fn by_width(code: &HazardProgram, tensor: TensorId, offset: PolyInterval) -> (Wide, PolyInterval, PolyInterval) {
    let rows = match code.kernel.tensors[tensor].shape[..] {
        [_, width] => split(code, offset.clone(), width),
        _ => None,
    };
    rows.unwrap_or((Wide::None, PolyInterval::number(0), offset))
}

/// The number of an element as a row and a column of rows that are `wide` elements apart.
fn split(code: &HazardProgram, offset: PolyInterval, wide: Value) -> Option<(Wide, PolyInterval, PolyInterval)> {
    let (mut row, mut col) = ((Vec::new(), 0), (Vec::new(), 0));
    let wide = match constant(code, wide) {
        Some(n) if n > 0 => {
            for (symbols, k) in offset.terms().iter().cloned() {
                let part = if k % n == 0 { &mut row } else { &mut col };
                part.0.push((symbols, if k % n == 0 { k / n } else { k }));
            }
            (row.1, col.1) = (offset.lo.div_euclid(n), offset.lo.rem_euclid(n));
            Wide::Number(n)
        }
        _ => {
            let by = poly(code, wide, 0)?;
            let [(symbols, 1)] = by.terms() else { return None };
            for (mut term, k) in offset.terms().iter().cloned() {
                let whole = symbols.iter().all(|s| match term.iter().position(|t| t == s) {
                    Some(at) => {
                        term.remove(at);
                        true
                    }
                    None => false,
                });
                match (whole, term.is_empty()) {
                    (true, true) => row.1 += k,
                    (true, false) => row.0.push((term, k)),
                    // A part of the stride alone: the terms were taken out one by one.
                    (false, _) if symbols.len() > 1 => return None,
                    (false, _) => col.0.push((term, k)),
                }
            }
            col.1 = offset.lo;
            Wide::Value(code.root(wide))
        }
    };
    Some((wide, PolyInterval::of_terms(row.0, row.1)?, PolyInterval::of_terms(col.0, col.1)?))
}

/// The same with what was assumed: a difference that is a known number gives one symbol in terms of the others.
fn under(code: &HazardProgram, mut p: PolyInterval, assumed: &[(Value, AffineValue)]) -> Option<PolyInterval> {
    for (v, n) in assumed {
        let Some(n) = n.constant() else { continue };
        let equation = match code.defs[*v] {
            Def::Binary(BinOp::Add | BinOp::Sub, ..) => poly(code, *v, 0)?.add(&PolyInterval::number(n).scaled(-1)?)?,
            _ => PolyInterval::symbol(*v).add(&PolyInterval::number(n).scaled(-1)?)?,
        };
        // 0 = equation: of its symbols the last one, which is computed from most.
        let alone = |t: &&(Vec<Value>, i64)| t.0.len() == 1 && t.1.abs() == 1;
        let Some((symbol, k)) = equation.terms().iter().rev().find(alone).cloned() else { continue };
        let Some(&(_, factor)) = p.terms().iter().find(|t| t.0 == symbol) else { continue };
        // symbol = symbol - k * equation, as k is 1 or -1
        p = p.add(&equation.scaled(k.checked_neg()?)?.scaled(factor)?)?;
    }
    Some(p)
}

fn aged(code: &HazardProgram, l: usize, counter: Option<Value>, p: &PolyInterval, age: u32) -> Option<PolyInterval> {
    let mut shift = 0i64;
    for (symbols, n) in p.terms() {
        for &s in symbols {
            if Some(s) == counter {
                if symbols.len() > 1 {
                    return None;
                }
                shift = shift.checked_sub(*n)?;
            } else if code.inside(s, l) {
                return None;
            }
        }
    }
    let mut out = p.clone();
    if shift == 0 {
        return Some(out);
    }
    let moved = |n: i64| if n == MIN || n == MAX { Some(n) } else { n.checked_add(shift) };
    (out.lo, out.hi) = (moved(out.lo)?, moved(out.hi)?);
    if age >= FAR {
        if shift < 0 {
            (out.lo, out.hi) = (MIN, if p.lo == MIN { p.hi } else { out.hi });
        } else {
            (out.lo, out.hi) = (if p.hi == MAX { p.lo } else { out.lo }, MAX);
        }
    }
    Some(out)
}

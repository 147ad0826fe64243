//! Parts of tensors in global memory, compared by how they are computed.
//!
//! Where a window starts is a polynomial in the scalars of the kernel. With the window's strides it falls into a row and a
//! column; windows of equal strides are apart if their rows or columns are. A loop's counter stays a symbol: what was
//! touched an iteration ago is rewritten in terms of the current one, so that `j * 128` becomes `j * 128 - 128`.

use super::bytes::Meet;
use super::code::{Code, Def};
use super::domain::{MAX, MIN, Num};
use super::poly::{Poly, constant, poly};
use ptoc_ir::tile::{TensorId, Value, ViewRef};
use ptoc_isa::BinOp;

/// Beyond this distance what was touched earlier is only known to be further away.
const FAR: u32 = 6;

/// A part of a tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Part {
    pub(super) tensor: TensorId,
    /// Where; `None`: anywhere in it.
    place: Option<Place>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Place {
    strides: (Value, Value),
    row: Poly,
    col: Poly,
    rows: i64,
    cols: i64,
    /// Iterations that have passed since.
    age: u32,
}

impl Part {
    pub(super) fn anywhere(tensor: TensorId) -> Part {
        Part { tensor, place: None }
    }

    /// The window `view`, of at most `cap` rows and columns.
    pub(super) fn window(
        code: &Code,
        tensor: TensorId,
        view: &ViewRef,
        cap: Option<(u32, u32)>,
        assumed: &[(Value, Num)],
    ) -> Part {
        let place = cap.and_then(|cap| {
            let &[s0, s1] = &view.strides[..] else { return None };
            let offset = under(code, poly(code, view.offset, 0)?, assumed)?;
            // The one that is not 1 tells rows from columns.
            let (wide, flip) = match (constant(code, s0), constant(code, s1)) {
                (_, Some(1)) => (s0, false),
                (Some(1), _) => (s1, true),
                _ => return None,
            };
            let (mut row, mut col) = (Poly::number(0), Poly::number(0));
            match constant(code, wide) {
                Some(n) if n > 0 => {
                    for (symbols, k) in offset.terms {
                        let part = if k % n == 0 { &mut row } else { &mut col };
                        part.terms.push((symbols, if k % n == 0 { k / n } else { k }));
                    }
                    (row.lo, col.lo) = (offset.lo.div_euclid(n), offset.lo.rem_euclid(n));
                }
                _ => {
                    let by = poly(code, wide, 0)?;
                    let [(symbols, 1)] = &by.terms[..] else { return None };
                    for (mut term, k) in offset.terms {
                        let whole = symbols.iter().all(|s| match term.iter().position(|t| t == s) {
                            Some(at) => {
                                term.remove(at);
                                true
                            }
                            None => false,
                        });
                        match (whole, term.is_empty()) {
                            (true, true) => row.lo += k,
                            (true, false) => row.terms.push((term, k)),
                            // A part of the stride alone: the terms were taken out one by one.
                            (false, _) if symbols.len() > 1 => return None,
                            (false, _) => col.terms.push((term, k)),
                        }
                    }
                    col.lo = offset.lo;
                }
            }
            (row.hi, col.hi) = (row.lo, col.lo);
            let (rows, cols) = if flip { (cap.1, cap.0) } else { cap };
            Some(Place {
                strides: (s0, s1),
                row: row.normal()?,
                col: col.normal()?,
                rows: i64::from(rows),
                cols: i64::from(cols),
                age: 0,
            })
        });
        Part { tensor, place }
    }

    /// One element.
    pub(super) fn element(code: &Code, tensor: TensorId, offset: Value) -> Part {
        let place = poly(code, offset, 0).map(|col| Place {
            strides: (offset, offset),
            row: Poly::number(0),
            col,
            rows: 1,
            cols: 1,
            age: 0,
        });
        // Elements are compared with elements only.
        let unit = Value::from_u32(0);
        Part { tensor, place: place.map(|p| Place { strides: (unit, unit), ..p }) }
    }

    pub(super) fn meet(&self, other: &Part) -> Meet {
        if self.tensor != other.tensor {
            return Meet::No;
        }
        let (Some(a), Some(b)) = (&self.place, &other.place) else { return Meet::Maybe };
        if a.strides != b.strides {
            return Meet::Maybe;
        }
        let apart = |x: &Poly, y: &Poly, nx: i64, ny: i64| {
            if x.terms != y.terms {
                return (false, false);
            }
            let low = if x.lo == MIN || y.hi == MAX { MIN } else { x.lo - y.hi };
            let high = if x.hi == MAX || y.lo == MIN { MAX } else { x.hi - y.lo };
            (low >= ny || high <= -nx, low == 0 && high == 0)
        };
        let (rows, cols) = (apart(&a.row, &b.row, a.rows, b.rows), apart(&a.col, &b.col, a.cols, b.cols));
        if rows.0 || cols.0 {
            Meet::No
        } else if rows.1 && cols.1 {
            Meet::Yes
        } else {
            Meet::Maybe
        }
    }

    /// The same seen from the next iteration of loop `l`; `None`: not known any more.
    pub(super) fn aged(&self, code: &Code, l: usize) -> Part {
        let vague = Part { tensor: self.tensor, place: None };
        let Some(place) = &self.place else { return vague };
        let counter = code.loops[l].counted.map(|c| c.index);
        let Some(row) = aged(code, l, counter, &place.row, place.age) else { return vague };
        let Some(col) = aged(code, l, counter, &place.col, place.age) else { return vague };
        let moved = row != place.row || col != place.col;
        let age = if moved { (place.age + 1).min(FAR + 1) } else { place.age };
        Part { tensor: self.tensor, place: Some(Place { row, col, age, ..place.clone() }) }
    }

    /// The same after loop `l`.
    pub(super) fn after(&self, code: &Code, l: usize) -> Part {
        let of = |p: &Poly| p.terms.iter().flat_map(|t| &t.0).any(|v| code.inside(*v, l));
        match &self.place {
            Some(p) if !of(&p.row) && !of(&p.col) => self.clone(),
            _ => Part { tensor: self.tensor, place: None },
        }
    }
}

/// The same with what was assumed: a difference that is a known number gives one symbol in terms of the others.
fn under(code: &Code, mut p: Poly, assumed: &[(Value, Num)]) -> Option<Poly> {
    for (v, n) in assumed {
        let Some(n) = n.constant() else { continue };
        let equation = match code.defs[*v] {
            Def::Binary(BinOp::Add | BinOp::Sub, ..) => poly(code, *v, 0)?.add(Poly::number(n).scaled(-1)?)?,
            _ => Poly::symbol(*v).add(Poly::number(n).scaled(-1)?)?,
        };
        // 0 = equation: of its symbols the last one, which is computed from most.
        let alone = |t: &&(Vec<Value>, i64)| t.0.len() == 1 && t.1.abs() == 1;
        let Some((symbol, k)) = equation.terms.iter().rev().find(alone).cloned() else { continue };
        let mut rest = equation.scaled(-k)?;
        rest.terms.retain(|t| t.0 != symbol);
        let Some(at) = p.terms.iter().position(|t| t.0 == symbol) else { continue };
        let (_, factor) = p.terms.remove(at);
        p = p.add(rest.scaled(factor)?)?;
    }
    Some(p)
}

fn aged(code: &Code, l: usize, counter: Option<Value>, p: &Poly, age: u32) -> Option<Poly> {
    let mut shift = 0i64;
    for (symbols, n) in &p.terms {
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

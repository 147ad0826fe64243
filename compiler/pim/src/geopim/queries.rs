//! The queries of a launch: what every block samples and where it stores, and whether that is what units go through by
//! themselves.

use super::{Refused, refuse, unit_of};
use crate::advice;
use crate::eval::{BlockScalars, EvaluatedWindow, Visitor};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Inst, Kernel, Op, Operand, Stmt, Tile};
use ptoc_isa::{Oob, RoundMode, Sem, Target, lookup};
use ptoc_tensor::DType;

/// One query: a TSAMPLE and the TSTORE of its result.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) unit: i64,
    pub(super) map: EvaluatedWindow,
    pub(super) geo: EvaluatedWindow,
    pub(super) attn: EvaluatedWindow,
    pub(super) offs: Option<EvaluatedWindow>,
    pub(super) fold: bool,
    pub(super) border: Oob,
    pub(super) channels: i64,
    pub(super) out: Option<EvaluatedWindow>,
    pub(super) span: Span,
}

impl Query {
    /// Samples, which are as many as there are weights.
    pub(super) fn samples(&self) -> i64 {
        self.attn.shape.iter().product()
    }
}

/// Where a tile's value stands on its way to the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputState {
    Sum,
    Rounded,
}

struct Block<'k> {
    kernel: &'k Kernel,
    unit: i64,
    queries: Vec<Query>,
    tiles: Vec<(Tile, usize, OutputState)>,
}

impl Block<'_> {
    /// What the fixed program of a unit does not contain.
    fn cannot<T>(&self, span: Span, message: String) -> Result<T, Refused> {
        Err(Box::new(
            Diagnostic::error(codes::UNIT_CANNOT, span, message)
                .with_label("no unit does this")
                .with_note("a unit's program is fixed: TSAMPLE, and TSTORE of the sums rounded to f16")
                .with_help(advice::host(self.kernel)),
        ))
    }

    fn tile(&self, o: &Operand) -> Option<Tile> {
        match o {
            Operand::Tile(t) if t.element.is_none() && t.origin.is_none() => Some(t.tile),
            _ => None,
        }
    }

    fn holds(&self, o: &Operand, state: OutputState) -> Option<usize> {
        let tile = self.tile(o)?;
        self.tiles.iter().rev().find(|(t, ..)| *t == tile).filter(|(_, _, s)| *s == state).map(|(_, q, _)| *q)
    }
}

impl Visitor for Block<'_> {
    fn inst(&mut self, inst: &Inst, span: Span, numbers: &BlockScalars<'_>) -> Result<(), Refused> {
        let window = |n: usize| match inst.operands.get(n) {
            Some(Operand::View(v)) => Some(numbers.window(v)),
            _ => None,
        };
        match inst.instr.get().sem {
            Sem::Sample => {
                let (Some(tile), Some(map), Some(geo), Some(attn)) =
                    (self.tile(&inst.operands[0]), window(1), window(2), window(3))
                else {
                    return self.cannot(span, "a unit samples into a whole tile".into());
                };
                let channels = map.shape.last().copied().unwrap_or(0);
                self.tiles.push((tile, self.queries.len(), OutputState::Sum));
                self.queries.push(Query {
                    unit: self.unit,
                    map,
                    geo,
                    attn,
                    offs: window(4),
                    fold: inst.attrs.fold.unwrap_or(true),
                    border: inst.attrs.oob.unwrap_or(Oob::Clamp),
                    channels,
                    out: None,
                    span,
                });
                Ok(())
            }
            _ if Some(inst.instr) == lookup("TCVT") => {
                let from = self.holds(&inst.operands[1], OutputState::Sum);
                let (Some(query), Some(to)) = (from, self.tile(&inst.operands[0])) else {
                    return self.cannot(span, "a unit converts nothing but its sums".into());
                };
                let rint = inst.attrs.round.is_none_or(|r| r == RoundMode::Rint);
                if self.kernel.tiles[to].ty.dtype != DType::F16 || !rint {
                    let message = "a unit rounds its sums to the nearest f16 and to nothing else".into();
                    return self.cannot(span, message);
                }
                self.tiles.push((to, query, OutputState::Rounded));
                Ok(())
            }
            _ if Some(inst.instr) == lookup("TSTORE") => {
                let stored = inst.operands.iter().find_map(|o| self.holds(o, OutputState::Rounded));
                let view = inst.operands.iter().find_map(|o| match o {
                    Operand::View(v) => Some(numbers.window(v)),
                    _ => None,
                });
                let sum = inst.operands.iter().any(|o| self.holds(o, OutputState::Sum).is_some());
                if let (true, Some(view)) = (sum, &view) {
                    let name = self.kernel.tensors.values().nth(view.tensor as usize).map_or("?", |t| t.name.as_str());
                    let message = format!("a unit stores its sums rounded to f16, and `{name}` takes them as they are");
                    let help = format!(
                        "declare `{name}` as f16 and store `f16(acc)`; where f32 is wanted, let a kernel of the host, \
                         `#[on(host)]`, convert it"
                    );
                    return refuse(codes::UNIT_CANNOT, span, message, &help);
                }
                let (Some(query), Some(view), false) = (stored, view, inst.attrs.atomic.is_some()) else {
                    let message = "a unit stores its sums, rounded to f16, and nothing else".into();
                    return refuse(codes::UNIT_CANNOT, span, message, "write `TSTORE(y[..], f16(acc))`");
                };
                let q = &mut self.queries[query];
                let row = view.shape.iter().product::<i64>() == q.channels;
                if q.out.is_some() || !row {
                    let message = "a unit writes the result of a query once, as a row of its channels".into();
                    return refuse(codes::UNIT_CANNOT, span, message, "store the tile as a whole, once");
                }
                q.out = Some(view);
                Ok(())
            }
            _ => {
                let name = inst.instr.get().name;
                self.cannot(span, format!("a GeoPIM unit has no {name}"))
            }
        }
    }

    fn other(&mut self, stmt: &Stmt, _: &BlockScalars<'_>) -> Result<(), Refused> {
        let what = match &stmt.op {
            Op::Load { .. } | Op::TileGet { .. } => "reads numbers that decide what it does",
            Op::Print { .. } => "prints",
            Op::Copy(_) => "copies along a nest of axes",
            _ => "does this",
        };
        self.cannot(stmt.span, format!("no GeoPIM unit {what}"))
    }
}

/// The queries of all blocks, in order.
pub(super) fn queries(kernel: &Kernel, values: &[u64], target: &Target) -> Result<Vec<Query>, Refused> {
    let mut numbers = BlockScalars::new(kernel, values);
    let grid = numbers.grid();
    let blocks = grid.iter().copied().fold(1, i64::saturating_mul);
    let mut all = Vec::new();
    for block in 0..blocks {
        let mut rest = block;
        let mut at: Vec<i64> = grid
            .iter()
            .rev()
            .map(|n| {
                let i = rest % n;
                rest /= n;
                i
            })
            .collect();
        at.reverse();
        let unit = unit_of(kernel, target, &at).unwrap_or(block);
        let mut visitor = Block { kernel, unit, queries: Vec::new(), tiles: Vec::new() };
        numbers.block(&at, &mut visitor)?;
        if let Some(q) = visitor.queries.iter().find(|q| q.out.is_none()) {
            let message = "the result of this query is not stored".into();
            return refuse(
                codes::UNIT_CANNOT,
                q.span,
                message,
                "a unit writes every result: add `TSTORE(y[..], f16(acc))`",
            );
        }
        all.extend(visitor.queries);
    }
    Ok(all)
}

fn queries_of(n: i64) -> String {
    if n == 1 { "one query".into() } else { format!("{n} queries") }
}

/// What the order of the queries should be.
pub(super) struct Order {
    pub(super) per_item: i64,
    pub(super) each: i64,
    pub(super) units: i64,
    pub(super) item: i64,
}

/// Checks that every query asks for its own rows, and that it is its unit's turn.
pub(super) fn in_order(kernel: &Kernel, queries: &[Query], first: &Query, o: &Order) -> Result<(), Refused> {
    let samples = first.samples();
    for (n, q) in queries.iter().enumerate() {
        let n = n as i64;
        let (b, of_item) = (n / o.per_item.max(1), n % o.per_item.max(1));
        let unit = first.unit + b * o.units + of_item / o.each;
        if q.unit != unit {
            let message = format!("query {n} belongs to unit {}, and it is the turn of unit {unit}", q.unit);
            return Err(Box::new(
                Diagnostic::error(codes::UNIT_QUERIES, q.span, message)
                    .with_label("on another unit than what comes next")
                    .with_note(format!(
                        "every unit has {} as the first one has; the last of a batch item may have fewer",
                        queries_of(o.each)
                    ))
                    .with_help(
                        "give blocks of equal numbers of queries to successive units: steps of `1@unit` in \
                        `on`, no query left out",
                    ),
            ));
        }
        if let Some((what, own, wanted)) = difference(q, first) {
            let message = format!("query {n} has {own}, and query 0 {wanted}: the units have one {what} for all");
            let help =
                format!("let all queries of a kernel have the same {what}, or give each {what} a kernel of its own");
            return Err(Box::new(
                Diagnostic::error(codes::UNIT_QUERIES, q.span, message)
                    .with_label("not like the first query")
                    .with_secondary(first.span, "the first query")
                    .with_help(help),
            ));
        }
        let out = q.out.as_ref().unwrap_or(&q.geo);
        let mut rows = vec![
            ("samples map", q.map.tensor, q.map.offset, b * o.item, o.item),
            ("takes line", q.geo.tensor, q.geo.offset, 4 * n, 4),
            ("takes row", q.attn.tensor, q.attn.offset, n * samples, samples),
            ("writes row", out.tensor, out.offset, n * q.channels, q.channels),
        ];
        rows.extend(q.offs.as_ref().map(|w| ("takes row", w.tensor, w.offset, n * samples * 2, samples * 2)));
        for (does, tensor, got, wanted, size) in rows {
            if got == wanted {
                continue;
            }
            let name = kernel.tensors.values().nth(tensor as usize).map_or("?", |t| t.name.as_str());
            let whole = size > 0 && got % size == 0;
            let message = match whole {
                true => {
                    format!("query {n} {does} {} of `{name}`, and its unit would take {}", got / size, wanted / size)
                }
                false => format!(
                    "query {n} is at element {got} of `{name}`, and its unit would be at element {wanted}: {size} a \
                    query"
                ),
            };
            return Err(Box::new(
                Diagnostic::error(codes::UNIT_QUERIES, q.span, message)
                    .with_label("not what comes next")
                    .with_note(
                        "a unit counts for itself: batch item after batch item, query after query, row after row of \
                        each array",
                    )
                    .with_help(format!(
                        "this is query {of_item} of item {b}: give it row `[{b}, {of_item}]` of every array, and map \
                         {b}; or let the grid go over the queries in the order of the rows"
                    )),
            ));
        }
    }
    Ok(())
}

/// What two queries have that the units have once: what it is, this query's, and the first one's.
fn difference(q: &Query, first: &Query) -> Option<(&'static str, String, String)> {
    let pair = |what, of: &dyn Fn(&Query) -> String| {
        let (own, wanted) = (of(q), of(first));
        (own != wanted).then_some((what, own, wanted))
    };
    let size = |w: &EvaluatedWindow| w.shape.iter().map(i64::to_string).collect::<Vec<_>>().join(" x ");
    pair("number of samples", &|q| format!("{} samples", q.samples()))
        .or_else(|| pair("way of folding weights", &|q| format!("`fold = {}`", q.fold)))
        .or_else(|| pair("border", &|q| format!("`border = {:?}`", q.border)))
        .or_else(|| pair("choice of offsets", &|q| if q.offs.is_some() { "offsets" } else { "no offsets" }.into()))
        .or_else(|| pair("size of maps", &|q| format!("a map of {}", size(&q.map))))
}

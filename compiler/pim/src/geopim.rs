//! GeoPIM: a kernel of TSAMPLEs becomes a descriptor, a parameter entry for each query, and the driver's three commands.
//!
//! A unit goes through its entries by itself, so the kernel must ask for what the units' registers can say: query `q` of batch item
//! `b` samples the item's map, takes its own row of `geo`, `attn` and `offs`, and leaves its result in its own row of the output; and the
//! blocks must give each unit queries that follow each other. What differs is an error with both numbers.

use crate::eval::{Numbers, Visitor, Window};
use crate::place::{last_slots, leaf, of_author, rows, slot_size, slots, within};
use crate::rows::{Laid, Rows};
use crate::{Lines, advice};
use crate::{Need, Piece};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Coord as IrCoord, Inst, Kernel, Op, Operand, Stmt, Tile};
use ptoc_isa::{GeoUnit, Oob, RoundMode, Sem, Target, UnitKind, lookup};
use ptoc_pim_stream::driver::{Command, Kind};
use ptoc_pim_stream::placement::{Coord, Leaf, Placement};
use ptoc_pim_stream::stream::*;
use ptoc_pim_stream::unit::{GeoPim, UnitConfig};
use ptoc_tensor::DType;

type Refused = Box<Diagnostic>;

/// One query: a TSAMPLE and the TSTORE of its result.
#[derive(Clone, Debug)]
struct Query {
    unit: i64,
    map: Window,
    geo: Window,
    attn: Window,
    offs: Option<Window>,
    fold: bool,
    border: Oob,
    channels: i64,
    out: Option<(u32, i64)>,
    span: Span,
}

/// Where a tile's value stands on its way to the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Sum,
    Rounded,
}

struct Block<'k> {
    kernel: &'k Kernel,
    unit: i64,
    queries: Vec<Query>,
    tiles: Vec<(Tile, usize, State)>,
}

fn refuse<T>(code: ptoc_diagnostics::Code, span: Span, message: String, help: &str) -> Result<T, Refused> {
    Err(Box::new(Diagnostic::error(code, span, message).with_help(help)))
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

    fn holds(&self, o: &Operand, state: State) -> Option<usize> {
        let tile = self.tile(o)?;
        self.tiles.iter().rev().find(|(t, ..)| *t == tile).filter(|(_, _, s)| *s == state).map(|(_, q, _)| *q)
    }
}

impl Visitor for Block<'_> {
    fn inst(&mut self, inst: &Inst, span: Span, numbers: &Numbers<'_>) -> Result<(), Refused> {
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
                self.tiles.push((tile, self.queries.len(), State::Sum));
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
                let from = self.holds(&inst.operands[1], State::Sum);
                let (Some(query), Some(to)) = (from, self.tile(&inst.operands[0])) else {
                    return self.cannot(span, "a unit converts nothing but its sums".into());
                };
                let rint = inst.attrs.round.is_none_or(|r| r == RoundMode::Rint);
                if self.kernel.tiles[to].ty.dtype != DType::F16 || !rint {
                    let message = "a unit rounds its sums to the nearest f16 and to nothing else".into();
                    return self.cannot(span, message);
                }
                self.tiles.push((to, query, State::Rounded));
                Ok(())
            }
            _ if Some(inst.instr) == lookup("TSTORE") => {
                let stored = inst.operands.iter().find_map(|o| self.holds(o, State::Rounded));
                let view = inst.operands.iter().find_map(|o| match o {
                    Operand::View(v) => Some(numbers.window(v)),
                    _ => None,
                });
                let (Some(query), Some(view), false) = (stored, view, inst.attrs.atomic_add) else {
                    let message = "a unit stores its sums, rounded to f16, and nothing else".into();
                    return refuse(codes::UNIT_CANNOT, span, message, "write `TSTORE(y[..], f16(acc))`");
                };
                let q = &mut self.queries[query];
                let row = view.shape.last() == Some(&q.channels) && view.strides.last() == Some(&1);
                if q.out.is_some() || !row {
                    let message = "a unit writes the result of a query once, as a row of its channels".into();
                    return refuse(codes::UNIT_CANNOT, span, message, "store the tile as a whole, once");
                }
                q.out = Some((view.tensor, view.offset));
                Ok(())
            }
            _ => {
                let name = inst.instr.get().name;
                self.cannot(span, format!("a GeoPIM unit has no {name}"))
            }
        }
    }

    fn other(&mut self, stmt: &Stmt, _: &Numbers<'_>) -> Result<(), Refused> {
        let what = match &stmt.op {
            Op::Load { .. } | Op::TileGet { .. } => "reads numbers that decide what it does",
            Op::Print { .. } => "prints",
            Op::Copy(_) => "copies along a nest of axes",
            _ => "does this",
        };
        self.cannot(stmt.span, format!("no GeoPIM unit {what}"))
    }
}

/// Compiles a launch, whose tensors go to these rows.
pub fn compile(
    kernel: &Kernel,
    values: &[u64],
    target: &Target,
    lines: Lines<'_>,
    rows: &Rows,
) -> Result<Piece, Refused> {
    let queries = queries(kernel, values, target)?;
    if Numbers::new(kernel, values).grid().contains(&0) {
        return Ok(Piece {
            wants: Vec::new(),
            host: Vec::new(),
            steps: Vec::new(),
            gives: Vec::new(),
            temps: Vec::new(),
        });
    }
    let Some(first) = queries.first() else {
        let message = "no block samples anything: there is nothing for units to do".into();
        return refuse(codes::UNIT_CANNOT, kernel.span, message, &advice::host(kernel));
    };
    let plan = Plan::new(kernel, values, target, &queries, first)?;
    plan.piece(lines, rows.clone())
}

/// The queries of all blocks, in order.
fn queries(kernel: &Kernel, values: &[u64], target: &Target) -> Result<Vec<Query>, Refused> {
    let mut numbers = Numbers::new(kernel, values);
    let grid = numbers.grid();
    let blocks: i64 = grid.iter().product();
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

/// The unit that runs a block; `None` if the author does not say.
fn unit_of(kernel: &Kernel, target: &Target, at: &[i64]) -> Option<i64> {
    unit_at(target, kernel.on.as_ref()?.at(at))
}

/// The unit at these coordinates, counted through bank groups, pseudo-channels and channels.
fn unit_at(target: &Target, c: [i64; 8]) -> Option<i64> {
    let d = target.device.as_ref()?;
    let of = |coord: IrCoord| c[coord as usize];
    let pch = of(IrCoord::Channel) * i64::from(d.pseudo_channels) + of(IrCoord::Pch);
    let group = pch * i64::from(d.bank_groups) + of(IrCoord::Bg);
    Some(group * i64::from(d.banks) + of(IrCoord::Bank) + of(IrCoord::Unit))
}

/// What the descriptor, the entries and the placements say.
struct Plan<'k> {
    kernel: &'k Kernel,
    target: &'k Target,
    shapes: Vec<Vec<u32>>,
    /// Tensors by number: map, geo, attn, offs, output.
    tensors: [Option<u32>; 5],
    first: &'k Query,
    /// The first unit, units of a batch item, queries of a unit, batch items.
    first_unit: u32,
    units: u32,
    queries: u32,
    batch: u32,
    size: [u32; 3],
    layout: MapLayout,
    map: Placement,
    map_rows: u32,
    /// Whose maps a bank holds.
    items: Items,
}

impl<'k> Plan<'k> {
    fn new(
        kernel: &'k Kernel,
        values: &[u64],
        target: &'k Target,
        queries: &[Query],
        first: &'k Query,
    ) -> Result<Plan<'k>, Refused> {
        let numbers = Numbers::new(kernel, values);
        let mut shapes = Vec::new();
        for t in kernel.tensors.values() {
            let shape: Option<Vec<u32>> = t.shape.iter().map(|v| u32::try_from(numbers.index(*v)).ok()).collect();
            let Some(shape) = shape else {
                return refuse(
                    codes::UNIT_CANNOT,
                    t.span,
                    format!("`{}` is too large for the memory", t.name),
                    &advice::host(kernel),
                );
            };
            shapes.push(shape);
        }
        let tensors = [
            Some(first.map.tensor),
            Some(first.geo.tensor),
            Some(first.attn.tensor),
            first.offs.as_ref().map(|w| w.tensor),
            first.out.map(|o| o.0),
        ];
        let [h, w, c] = <[i64; 3]>::try_from(first.map.shape.clone()).unwrap_or([0; 3]);
        let size = [h, w, c].map(|n| u32::try_from(n).unwrap_or(0));
        let item = h * w * c;
        let of_map = &shapes[first.map.tensor as usize];
        let elements: i64 = of_map.iter().map(|n| i64::from(*n)).product();
        let batch = u32::try_from(elements / item.max(1)).unwrap_or(0);
        if first.map.strides != [w * c, c, 1] || batch == 0 || i64::from(batch) * item != elements {
            let message = "the map of a query is a whole item of its tensor, channels last".into();
            return refuse(codes::UNIT_MAP, first.span, message, "sample `feat[b, _, _, _]` of `f16[B, H, W, C]`");
        }
        let total = shapes[first.geo.tensor as usize].iter().map(|n| u64::from(*n)).product::<u64>() / 4;
        let (per_item, first_unit) = ((total / u64::from(batch)) as i64, first.unit);
        let each = queries.iter().take_while(|q| q.unit == first_unit).count() as i64;
        let units = (per_item + each - 1) / each;
        in_order(queries, first, &Order { per_item, each, units, item, batch })?;
        let numbers = [first_unit, units, each].map(u32::try_from);
        let [Ok(first_unit), Ok(units), Ok(queries)] = numbers else {
            return refuse(
                codes::UNIT_QUERIES,
                first.span,
                "there are not as many units".into(),
                &advice::host(kernel),
            );
        };
        let mut plan = Plan {
            kernel,
            target,
            shapes,
            tensors,
            first,
            first_unit,
            units,
            queries,
            batch,
            size,
            layout: MapLayout::Pixels,
            map: Placement::default(),
            map_rows: 0,
            items: Items::All,
        };
        plan.place_map()?;
        Ok(plan)
    }

    /// Bursts of a row.
    fn row(&self) -> u32 {
        self.target.device.as_ref().map_or(32, |d| d.bursts)
    }

    /// The burst of a pixel's first channels and how many rows an item takes, if pixels lie so.
    fn formula(&self, layout: MapLayout) -> impl Fn(u32, u32) -> u64 {
        let [_, w, c] = self.size.map(u64::from);
        let (pixel, row) = (c / 16, u64::from(self.row()));
        move |y, x| {
            let (y, x) = (u64::from(y), u64::from(x));
            match layout {
                MapLayout::Pixels => (y * w + x) * pixel,
                MapLayout::Patches => (y / 2 * (w / 2) + x / 2) * row + (y % 2 * 2 + x % 2) * pixel,
            }
        }
    }

    fn item_rows(&self, layout: MapLayout) -> u32 {
        let [h, w, c] = self.size;
        match layout {
            MapLayout::Pixels => rows(h * w, c / 16, self.row()),
            MapLayout::Patches => (h / 2) * (w / 2),
        }
    }

    /// Finds out how the author's map lies, or decides.
    fn place_map(&mut self) -> Result<(), Refused> {
        let [h, w, c] = self.size;
        let row = self.row();
        if !c.is_multiple_of(16) {
            let message = format!("a pixel is whole bursts of 16 channels, and this map has {c}");
            return refuse(codes::UNIT_MAP, self.first.span, message, "pad the channels to a multiple of 16");
        }
        let patches = h.is_multiple_of(2) && w.is_multiple_of(2) && 4 * (c / 16) <= row;
        let data = &self.kernel.tensors.values().nth(self.first.map.tensor as usize);
        let author = data.and_then(|t| t.place.as_ref());
        let Some(author) = author else {
            self.layout = if patches { MapLayout::Patches } else { MapLayout::Pixels };
            let Some(map) = self.chosen_map() else {
                let message = format!(
                    "a map of {h} x {w} pixels of {} bytes is neither 2 x 2 patches in rows of {} bytes nor whole rows of pixels",
                    2 * c,
                    32 * row
                );
                let help = match 4 * (c / 16) <= row {
                    true => "pad height and width to even numbers",
                    false => "a patch of four pixels fits in a row with fewer channels; sample them in parts",
                };
                return refuse(codes::UNIT_MAP, self.first.span, message, help);
            };
            self.map = map;
            self.map_rows = self.batch * self.item_rows(self.layout);
            return Ok(());
        };
        let rank = author.dims.len();
        let coordinates = |b: u32, y: u32, x: u32, n: u32| {
            let index = [i64::from(b), i64::from(y), i64::from(x), 16 * i64::from(n)];
            author.at(&index[4 - rank.min(4)..])
        };
        let burst = |at: [i64; 8]| (at[IrCoord::Row as usize] * i64::from(row) + at[IrCoord::Col as usize]) as u64;
        // Of an item's own unit, if it has one, or of all.
        let own = !author.replicated && self.units == 1;
        let lies = |layout: MapLayout| {
            let formula = self.formula(layout);
            let item = if own { 0 } else { u64::from(self.item_rows(layout)) * u64::from(row) };
            let pixels = (0..self.batch).flat_map(|b| (0..h).flat_map(move |y| (0..w).map(move |x| (b, y, x))));
            pixels.into_iter().all(|(b, y, x)| {
                (0..c / 16).all(|n| {
                    let at = coordinates(b, y, x, n);
                    let there = !own || unit_at(self.target, at) == Some(i64::from(self.first_unit + b));
                    there && burst(at) == u64::from(b) * item + formula(y, x) + u64::from(n)
                })
            })
        };
        let known = [MapLayout::Patches, MapLayout::Pixels].into_iter().filter(|l| *l == MapLayout::Pixels || patches);
        let span = data.map_or(self.first.span, |t| t.span);
        let Some(layout) = known.into_iter().find(|l| lies(*l)).filter(|_| author.replicated || own) else {
            let message = "the units' address generators do not find pixels that lie so".to_owned();
            let help = "lay the map in pixels one after the other or in 2 x 2 patches, one a row, from the row's start, `over unit`, or each item in \
                        the bank of the one unit that samples it; or leave `at` out";
            return refuse(codes::UNIT_MAP, span, message, help);
        };
        self.layout = layout;
        self.items = if own { Items::Own } else { Items::All };
        self.map_rows = if own { 1 } else { self.batch } * self.item_rows(layout);
        self.map = of_author(author).unwrap_or_default();
        Ok(())
    }

    /// The map in patches or pixels, as a placement; `None` if lines of pixels end inside of rows.
    fn chosen_map(&self) -> Option<Placement> {
        let [h, w, c] = self.size;
        let (pixel, row) = (c / 16, self.row());
        let channels = within(c, 16, 2, row);
        let item = leaf(self.batch, Coord::Row, self.item_rows(self.layout));
        let dims = match self.layout {
            MapLayout::Patches => vec![
                vec![item],
                vec![leaf(2, Coord::Col, 2 * pixel), leaf(h / 2, Coord::Row, w / 2)],
                vec![leaf(2, Coord::Col, pixel), leaf(w / 2, Coord::Row, 1)],
                channels,
            ],
            MapLayout::Pixels => {
                let x = slots(w, pixel, row)?;
                let line = w.checked_mul(pixel)?;
                vec![vec![item], last_slots(h, line, row)?, x, channels]
            }
        };
        let rank = self.shapes[self.first.map.tensor as usize].len();
        Some(Placement { dims: dims[4 - rank.min(4)..].to_vec(), row: 0, replicated: true })
    }

    /// An operand or result in slots of `size` bursts, one a query.
    fn slotted(&self, tensor: u32, size: u32, inner: Vec<Vec<Leaf>>) -> Option<Placement> {
        let mut queries = slots(self.queries, size, self.row())?;
        queries.push(leaf(self.units, Coord::Unit, 1));
        let mut dims = vec![vec![leaf(self.batch, Coord::Unit, self.units)], queries];
        dims.extend(inner);
        let rank = self.shapes[tensor as usize].len();
        // A tensor without a batch dimension has one item.
        let skip = dims.len().checked_sub(rank).filter(|n| *n == 0 || (*n == 1 && self.batch == 1))?;
        Some(Placement { dims: dims[skip..].to_vec(), row: 0, replicated: false })
    }

    fn piece(&self, lines: Lines<'_>, mut memory: Rows) -> Result<Piece, Refused> {
        let row = self.row();
        let bytes = u64::from(row) * 32;
        let q = self.first;
        let place = lines(q.span);
        let [map, geo, attn, offs, out] = self.tensors;
        let (Some(map), Some(geo), Some(attn), Some(out)) = (map, geo, attn, out) else {
            return refuse(
                codes::UNIT_CANNOT,
                q.span,
                "a query needs a map, a line, weights and a result".into(),
                &advice::host(self.kernel),
            );
        };
        // The entries and the units' counters decide where these lie.
        for tensor in [Some(geo), Some(attn), offs, Some(out)].into_iter().flatten() {
            let Some(t) = self.kernel.tensors.values().nth(tensor as usize).filter(|t| t.place.is_some()) else {
                continue;
            };
            let message = format!(
                "`{}` lies beside the queries of each unit, one behind the other, and not where `at` says",
                t.name
            );
            return refuse(codes::UNIT_QUERIES, t.span, message, "leave `at` out");
        }
        let samples = q.attn.shape.last().copied().unwrap_or(0);
        if samples == 0 {
            let message = "a unit takes at least one sample a query".into();
            return refuse(
                codes::UNIT_QUERIES,
                q.span,
                message,
                "without samples the result is 0: let the host write it",
            );
        }
        let Ok(samples) = u16::try_from(samples) else {
            let message = format!("{samples} samples a query; a unit counts them in 16 bits, up to 65535");
            return refuse(
                codes::UNIT_QUERIES,
                q.span,
                message,
                "divide the samples between queries and add the results on the host",
            );
        };
        let n = u32::from(samples);
        let [_, _, channels] = self.size;
        let attn_size = slot_size(self.queries, n.div_ceil(16).max(1), row);
        let offs_size = slot_size(self.queries, n.div_ceil(8).max(1), row);
        let unit = geo_unit(self.target, q.span)?;
        let order = loop_order(unit, self.target, q)?;
        let tile = 8 * u64::from(unit.tile_channels);
        let half = self.target.capacity(ptoc_isa::Loc::Buf) / u64::from(unit.buffers.max(1));
        if tile > half {
            let message = format!("a tile of four pixels takes {tile} bytes; half of the tile buffer has {half}");
            return refuse(
                codes::UNIT_CANNOT,
                q.span,
                message,
                &format!(
                    "give the unit a tile buffer that holds it: `-D capacity.Buf={}`",
                    tile * u64::from(unit.buffers.max(1))
                ),
            );
        }
        let address = |r: u32| u64::from(r) * bytes;
        let of_attn = self.slotted(attn, attn_size, vec![within(n, 16, 2, row)]);
        let of_offs = offs.map(|t| {
            let pairs = vec![within(n, 8, 4, row), vec![leaf(2, Coord::Byte, 2)]];
            (t, self.slotted(t, offs_size, pairs))
        });
        let of_out = self.slotted(out, channels / 16, vec![within(channels, 16, 2, row)]);
        let (Some(of_attn), Some(of_out)) = (of_attn, of_out) else {
            let fits = row / (channels / 16).max(1);
            let message = format!(
                "{} results of {channels} channels do not fill whole rows: a unit writes them one behind the other, and a row \
                 holds {fits}",
                self.queries
            );
            let help = match row.is_multiple_of((channels / 16).max(1)) {
                true => "let a block have at most as many queries as a row holds, or a multiple of them",
                false => "let a block have at most as many queries as a row holds",
            };
            return refuse(codes::UNIT_QUERIES, q.span, message, help);
        };
        let mut all = 0u32;
        let mut laid = |tensor: Option<u32>, placement: Placement, rows: u32| {
            all = all.saturating_add(rows);
            let row = memory.take(tensor, &placement, rows)?;
            Some(Laid { placement: Placement { row, ..placement }, rows })
        };
        let need = |tensor: u32, laid: Laid| Need { tensor, laid, place };
        let map_laid = laid(Some(map), self.map.clone(), self.map_rows);
        let params_laid = laid(None, Placement::default(), rows(self.queries, 1, row));
        let attn_laid = laid(Some(attn), of_attn, rows(self.queries, attn_size, row));
        let mut of_offsets = None;
        if let Some((tensor, placement)) = of_offs {
            let Some(placement) = placement else {
                return refuse(
                    codes::UNIT_QUERIES,
                    q.span,
                    "offsets are `[B, Q, S, 2]`".into(),
                    "give each query a row of them: `offs[b, q, _, _]`",
                );
            };
            of_offsets = Some((tensor, laid(Some(tensor), placement, rows(self.queries, offs_size, row))));
        }
        let out_laid = laid(Some(out), of_out, rows(self.queries, channels / 16, row));
        let full = || {
            let most = self.target.device.as_ref().map_or(u32::MAX, |d| d.rows);
            let message = format!(
                "map, weights and results of a unit take {all} rows of {bytes} bytes; its bank has {most}, {} free in one piece \
                 ({} for the map)",
                memory.longest(),
                self.map_rows
            );
            let help = "every bank has a copy of the map: give a smaller one, or fewer items";
            Box::new(Diagnostic::error(codes::UNIT_MAP, q.span, message).with_help(help))
        };
        let (Some(map_laid), Some(params_laid), Some(attn_laid), Some(out_laid)) =
            (map_laid, params_laid, attn_laid, out_laid)
        else {
            return Err(full());
        };
        let [map_row, params_row, attn_row, out_row] =
            [&map_laid, &params_laid, &attn_laid, &out_laid].map(|l| l.placement.row);
        let mut wants = vec![need(map, map_laid), need(attn, attn_laid)];
        let mut offsets = (0, false);
        if let Some((tensor, laid)) = of_offsets {
            let Some(laid) = laid else { return Err(full()) };
            offsets = (address(laid.placement.row), true);
            wants.push(need(tensor, laid));
        }
        let mut steps = Vec::new();
        let mut step = |action: Action| steps.push(Step { place, action });
        step(Action::Descriptor(Descriptor {
            feature: address(map_row),
            height: self.size[0],
            width: self.size[1],
            channels,
            tile_channels: unit.tile_channels,
            batch: self.batch,
            border: if q.border == Oob::Zero { Border::Zero } else { Border::Clamp },
            fold: q.fold,
            order,
            first_unit: self.first_unit,
            units: self.units * self.batch,
            queries: self.queries,
            map: self.layout,
            items: self.items,
        }));
        step(Action::Params(Params {
            geo,
            address: address(params_row),
            samples,
            weights: (address(attn_row), attn_size * 32),
            offsets: offsets.1.then_some((offsets.0, offs_size * 32)),
        }));
        let load = Command {
            params: address(params_row),
            weights: address(attn_row),
            offsets: offsets.0,
            has_offsets: offsets.1,
            ..Command::new(Kind::Load)
        };
        step(Action::Driver(load));
        step(Action::Driver(Command {
            queries: self.queries.min(u32::from(u16::MAX)) as u16,
            samples: n,
            output: address(out_row),
            offsets: offsets.0,
            has_offsets: offsets.1,
            ..Command::new(Kind::Execute)
        }));
        step(Action::Driver(Command { output: address(out_row), ..Command::new(Kind::Read) }));
        Ok(Piece { wants, host: vec![geo], steps, gives: vec![need(out, out_laid)], temps: Vec::new() })
    }
}

/// The numbers of the target's units, which are GeoPIM's.
fn geo_unit(target: &Target, span: Span) -> Result<GeoUnit, Refused> {
    match target.unit.map(|u| u.kind) {
        Some(UnitKind::GeoPim(unit)) => Ok(unit),
        _ => {
            refuse(codes::UNIT_CANNOT, span, format!("`{}` has no GeoPIM units", target.name), "use `--target geopim`")
        }
    }
}

/// The loops of a query: what `unit.order` asks for, or the order with the most row hits that the query allows.
fn loop_order(unit: GeoUnit, target: &Target, q: &Query) -> Result<LoopOrder, Refused> {
    let best = if q.fold { LoopOrder::Neighbour } else { LoopOrder::Tile };
    let order = LoopOrder::ALL.iter().copied().find(|o| o.name() == unit.order).unwrap_or(best);
    if order == LoopOrder::Neighbour && !q.fold {
        let message = "`unit.order=neighbour` without folded weights: a value in f16 takes its four neighbours at once";
        return refuse(
            codes::UNIT_CANNOT,
            q.span,
            message.into(),
            "write `fold = true`, or let `unit.order` be `tile` or `outer`",
        );
    }
    let (needed, there) = (2 * u64::from(unit.tile_channels), target.capacity(ptoc_isa::Loc::Vec) / 4);
    if order == LoopOrder::Outer && needed > there {
        let message = format!(
            "`unit.order=outer` needs {needed} accumulators, two tiles of {} channels; the unit has {there}",
            unit.tile_channels
        );
        return refuse(codes::UNIT_CANNOT, q.span, message, "the unit needs a larger `capacity.Vec`");
    }
    Ok(order)
}

/// The units of a target that has GeoPIM's.
pub fn unit(target: &Target, of: ptoc_isa::Unit, geo: GeoUnit) -> UnitConfig {
    let buffer = target.capacity(ptoc_isa::Loc::Buf).min(1 << 20) as u32 / geo.buffers.max(1);
    UnitConfig::GeoPim(GeoPim {
        clock_mhz: of.clock,
        lanes: of.lanes,
        buffer_bytes: buffer,
        buffers: geo.buffers,
        acc_regs: (target.capacity(ptoc_isa::Loc::Vec) / 4).min(1 << 20) as u32,
        param_entries: geo.parameters,
        scratchpad_bytes: geo.scratchpad,
        coordinate_cycles: geo.coordinate_cycles,
        act_weight: geo.act_weight,
        // The language counts units through a bank group first; a kernel of the units has an `on`.
        spread: 0,
        ..GeoPim::default()
    })
}

fn queries_of(n: i64) -> String {
    if n == 1 { "one query".into() } else { format!("{n} queries") }
}

/// What the order of the queries should be.
struct Order {
    per_item: i64,
    each: i64,
    units: i64,
    item: i64,
    batch: u32,
}

/// Does every query ask for its own rows, and is it its unit's turn?
fn in_order(queries: &[Query], first: &Query, o: &Order) -> Result<(), Refused> {
    let samples = first.attn.shape.last().copied().unwrap_or(0);
    for (n, q) in queries.iter().enumerate() {
        let n = n as i64;
        let (b, of_item) = (n / o.per_item.max(1), n % o.per_item.max(1));
        let wrong = |what: &str, got: i64, want: i64| {
            let message = format!("query {n} {what} {got}, and its unit would use element {want}");
            Err(Box::new(
                Diagnostic::error(codes::UNIT_QUERIES, q.span, message)
                    .with_label("not what comes next")
                    .with_note("a unit counts for itself: batch item after batch item, query after query, row after row of each array")
                    .with_help("give query `q` of item `b` row `[b, q]` of every array, and map `b`"),
            ))
        };
        let unit = first.unit + b * o.units + of_item / o.each;
        if q.unit != unit {
            let message = format!("query {n} belongs to unit {}, and it is the turn of unit {unit}", q.unit);
            return Err(Box::new(
                Diagnostic::error(codes::UNIT_QUERIES, q.span, message)
                    .with_label("on another unit than what comes next")
                    .with_note(format!("every unit has {} as the first one has; the last of a batch item may have fewer", queries_of(o.each)))
                    .with_help("give blocks of equal numbers of queries to successive units: steps of `1@unit` in `on`, no query left out"),
            ));
        }
        let same = (q.fold, q.border, &q.map.shape, &q.map.strides, q.offs.is_some(), &q.attn.shape)
            == (
                first.fold,
                first.border,
                &first.map.shape,
                &first.map.strides,
                first.offs.is_some(),
                &first.attn.shape,
            );
        if !same {
            let message = format!("query {n} differs from the first in its map, its modes or its number of samples");
            return refuse(codes::UNIT_QUERIES, q.span, message, "let all queries of a kernel be alike");
        }
        let offs = q.offs.as_ref().map_or(0, |w| w.offset);
        let want_offs = if q.offs.is_some() { n * samples * 2 } else { 0 };
        let pairs = [
            ("has its map at element", q.map.offset, b * o.item),
            ("has its line of `geo` at element", q.geo.offset, 4 * n),
            ("has its weights at element", q.attn.offset, n * samples),
            ("has its offsets at element", offs, want_offs),
            ("writes to element", q.out.map_or(0, |out| out.1), n * q.channels),
        ];
        for (what, got, want) in pairs {
            if got != want {
                return wrong(what, got, want);
            }
        }
    }
    let total = queries.len() as i64;
    if total != o.per_item * i64::from(o.batch) {
        let message = format!("{total} queries are computed; the arrays have {}", o.per_item * i64::from(o.batch));
        return refuse(codes::UNIT_QUERIES, first.span, message, "let the grid cover all queries");
    }
    Ok(())
}

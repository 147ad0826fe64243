//! What copies and products along nests touch.
//!
//! Along one axis all places of a side move evenly. So an axis is taken at once, as a run, wherever tables and guards
//! allow it and no two points can meet; everything else is done point by point, as the interpreter does it.

use super::memory::Matrix;
use super::sites::Data;
use super::tensors::{ElementRun, ElementUse};
use super::tiles::{ElementRect, StridedElements as Elements, TileStorage};
use super::worker::{BoundWindow, TrapResult, Worker};
use crate::nest::{BoundAffine, Led, led};
use crate::traffic::{Conflict, Home, Traffic};
use crate::wording;
use crate::wording::Meeting;
use ptoc_ir::scalar;
use ptoc_ir::tile::{Copy, Elem, Guard, Mma, NestAccess, Table, TensorId, TileRef, Ty, Value};
use ptoc_isa::Oob;
use ptoc_layout::Swizzle;
use std::ops::Range;

/// A table with its numbers.
struct Lookup {
    tensor: TensorId,
    at: BoundAffine,
    stride: i64,
    extent: i64,
    oob: Oob,
    memory: Option<Matrix>,
}

/// A side with its numbers.
enum BoundSide<'s> {
    Tile { w: BoundWindow<'s>, at: TileRef, row: BoundAffine, col: BoundAffine },
    Tensor { tensor: TensorId, elem: Elem, at: BoundAffine, swizzle: Option<Swizzle>, tables: Vec<Lookup> },
}

/// The place of an element on a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Spot {
    /// Row and column of the window.
    Tile(usize, usize),
    /// Number in the tensor.
    Element(i64),
    /// A table has no entry: there is no element.
    Nothing,
    /// A table has a wrong one: the code's own check ends the launch.
    Wrong,
}

/// A condition of a point, with its numbers.
struct Limit {
    at: BoundAffine,
    bound: i64,
}

/// Points, one after another: all axes but one, and the one that is taken at once.
struct Rows<'e> {
    extents: &'e [i64],
    inner: usize,
}

/// What is noted of the places of a nest that is done point by point.
struct Watch {
    traffic: Traffic,
    /// Where the nest writes.
    home: Home,
    /// The tensor that is written.
    written: Option<TensorId>,
}

/// The tables' entries, looked up for a point.
enum Entries {
    /// What they add to the number.
    Sum(i128),
    Nothing,
    Wrong,
}

impl<'s> Worker<'s> {
    pub(super) fn copy(&mut self, copy: &'s Copy) -> TrapResult {
        let extents = self.extents(&copy.extents);
        let (dst, src) = (self.side(&copy.dst)?, self.side(&copy.src)?);
        let guards = self.limits(&copy.guards);
        if extents.iter().any(|&e| e <= 0) {
            return Ok(());
        }
        let filled = copy.fill.is_some();
        let apart = !self.home(&src).meets(&self.home(&dst)) && distinct(&dst, &extents);
        if apart
            && even(&dst)
            && even(&src)
            && let Some(inner) = inner_axis(&extents, &[&dst, &src])
        {
            let rows = Rows { extents: &extents, inner };
            // The place of a fault is found point by point.
            if self.copy_rows(&rows, (&dst, &src), &guards, filled).is_ok() {
                return Ok(());
            }
        }
        self.copy_points(&extents, (&dst, &src), &guards, filled)
    }

    fn copy_rows(
        &mut self,
        rows: &Rows<'_>,
        (dst, src): (&BoundSide<'_>, &BoundSide<'_>),
        guards: &[Limit],
        filled: bool,
    ) -> TrapResult {
        let mut at = vec![0i64; rows.extents.len()];
        let count = rows.extents[rows.inner];
        loop {
            // Where the guards hold, of points that follow each other.
            let held = guards.iter().fold(0..count, |held, guard| guard.held(&at, rows.inner, held));
            let mut to = if filled { 0..count } else { held.clone() };
            if !held.is_empty() {
                match self.entries(src, &at)? {
                    Entries::Wrong => return Ok(()),
                    Entries::Sum(sum) => self.side_run(ElementUse::Read, src, (&mut at, rows.inner), held, sum)?,
                    // Without an entry there is nothing to write but what fills.
                    Entries::Nothing if filled => {}
                    Entries::Nothing => to = 0..0,
                }
            }
            self.side_run(ElementUse::Write, dst, (&mut at, rows.inner), to, 0)?;
            if !rows.next(&mut at) {
                return Ok(());
            }
        }
    }

    fn copy_points(
        &mut self,
        extents: &[i64],
        (dst, src): (&BoundSide<'_>, &BoundSide<'_>),
        guards: &[Limit],
        filled: bool,
    ) -> TrapResult {
        let count = extents.iter().fold(1u64, |n, &e| n.saturating_mul(e.unsigned_abs()));
        let mut watch = self.watch(dst, &[src], count);
        let meets = self.home(src).meets(&watch.home);
        let mut at = vec![0i64; extents.len()];
        loop {
            let mut written = filled;
            if guards.iter().all(|g| g.holds(&at)) {
                match self.read_point(src, meets, &at, &mut watch)? {
                    Spot::Wrong => return Ok(()),
                    Spot::Nothing => {}
                    _ => written = true,
                }
            }
            if written {
                let spot = self.spot(dst, &at, &mut watch)?;
                if spot == Spot::Wrong {
                    return Ok(());
                }
                self.note_write(dst, spot, &mut watch, "copy")?;
                self.touch(ElementUse::Write, dst, spot)?;
            }
            if !next(extents, &mut at) {
                return Ok(());
            }
        }
    }

    pub(super) fn mma(&mut self, mma: &'s Mma) -> TrapResult {
        let (m, n, k) = (self.extents(&mma.m), self.extents(&mma.n), self.extents(&mma.k));
        let (acc, a, b) = (self.side(&mma.acc)?, self.side(&mma.a)?, self.side(&mma.b)?);
        // Of the axes that a side does not see, the first point stands for all.
        let seen = |by_m: bool, by_n: bool, by_k: bool| -> Vec<i64> {
            let of = |axes: &[i64], seen: bool| -> Vec<i64> {
                axes.iter().map(|&e| if seen { e } else { e.min(1) }).collect()
            };
            [of(&m, by_m), of(&n, by_n), of(&k, by_k)].concat()
        };
        let outer = |axes: &[i64]| axes.iter().map(|&e| if e > 0 { e } else { 0 }).product::<i64>();
        let some = |e: Vec<i64>| e.into_iter().map(|e| e.max(1)).collect::<Vec<i64>>();
        let results = outer(&m).saturating_mul(outer(&n));
        let mut watch = self.watch(&acc, &[&a, &b], results.unsigned_abs());
        for (side, extents, empty) in [
            (&a, seen(true, false, true), outer(&m) * outer(&k).min(1) == 0),
            (&b, seen(false, true, true), outer(&n) * outer(&k).min(1) == 0),
        ] {
            if empty {
                continue;
            }
            let extents = some(extents);
            let meets = self.home(side).meets(&watch.home);
            if !meets
                && even(side)
                && let Some(inner) = inner_axis(&extents, &[side])
                && self.read_rows(&Rows { extents: &extents, inner }, side).is_ok()
            {
                continue;
            }
            let mut at = vec![0i64; extents.len()];
            loop {
                if self.read_point(side, meets, &at, &mut watch)? == Spot::Wrong {
                    return Ok(());
                }
                if !next(&extents, &mut at) {
                    break;
                }
            }
        }
        if results == 0 {
            return Ok(());
        }
        let extents = some(seen(true, true, false));
        let mut at = vec![0i64; extents.len()];
        let shared = [&a, &b].into_iter().any(|side| self.home(side).meets(&watch.home));
        if !shared
            && even(&acc)
            && distinct(&acc, &extents)
            && let Some(inner) = inner_axis(&extents, &[&acc])
        {
            let rows = Rows { extents: &extents, inner };
            let mut whole = true;
            while whole {
                let all = 0..extents[inner];
                whole = self.side_run(ElementUse::Read, &acc, (&mut at, inner), all.clone(), 0).is_ok()
                    && self.side_run(ElementUse::Write, &acc, (&mut at, inner), all, 0).is_ok();
                if whole && !rows.next(&mut at) {
                    return Ok(());
                }
            }
            at.fill(0);
        }
        loop {
            let spot = self.spot(&acc, &at, &mut watch)?;
            if spot == Spot::Wrong {
                return Ok(());
            }
            self.touch(ElementUse::Read, &acc, spot)?;
            self.note_write(&acc, spot, &mut watch, "matrix product")?;
            self.touch(ElementUse::Write, &acc, spot)?;
            if !next(&extents, &mut at) {
                return Ok(());
            }
        }
    }

    fn read_rows(&mut self, rows: &Rows<'_>, side: &BoundSide<'_>) -> TrapResult {
        let mut at = vec![0i64; rows.extents.len()];
        loop {
            match self.entries(side, &at)? {
                Entries::Wrong => return Ok(()),
                Entries::Nothing => {}
                Entries::Sum(sum) => {
                    let all = 0..rows.extents[rows.inner];
                    self.side_run(ElementUse::Read, side, (&mut at, rows.inner), all, sum)?;
                }
            }
            if !rows.next(&mut at) {
                return Ok(());
            }
        }
    }

    // ---- numbers -------------------------------------------------------------------------------------------------

    fn extents(&self, axes: &[Value]) -> Vec<i64> {
        axes.iter().map(|&v| self.index(v)).collect()
    }

    fn limits(&self, guards: &[Guard]) -> Vec<Limit> {
        let limit = |g: &Guard| Limit { at: BoundAffine::new(&g.at, |v| self.index(v)), bound: self.index(g.bound) };
        guards.iter().map(limit).collect()
    }

    fn side(&mut self, access: &'s NestAccess) -> TrapResult<BoundSide<'s>> {
        Ok(match access {
            NestAccess::Tile { tile, row, col } => {
                let w = self.window(tile)?;
                let line = |affine| BoundAffine::new(affine, |v| self.index(v));
                BoundSide::Tile { w, at: *tile, row: line(row), col: line(col) }
            }
            NestAccess::Tensor { tensor, elem, at, swizzle, tables } => {
                let lookup = |t: &Table| Lookup {
                    tensor: t.tensor,
                    at: BoundAffine::new(&t.at, |v| self.index(v)),
                    stride: self.index(t.stride),
                    extent: self.index(t.extent),
                    oob: t.oob,
                    memory: self.table(t.tensor),
                };
                let tables = tables.iter().map(lookup).collect();
                let at = BoundAffine::new(at, |v| self.index(v));
                BoundSide::Tensor { tensor: *tensor, elem: *elem, at, swizzle: *swizzle, tables }
            }
        })
    }

    /// Where the entries of a table are.
    fn table(&self, tensor: TensorId) -> Option<Matrix> {
        let size = self.s.tensors[tensor].dtype.size();
        let argument = self.s.memory.get(tensor.as_u32() as usize).map(|&at| Matrix::row_of(at, size));
        argument.or_else(|| self.matrix(Data::Scratch(tensor)).map(|m| Matrix::row_of(m.at, size)))
    }

    fn home(&self, side: &BoundSide<'_>) -> Home {
        match side {
            BoundSide::Tensor { tensor, .. } => Home::Tensor(*tensor, self.s.tensors[*tensor].bytes as u64),
            BoundSide::Tile { w, .. } => match (w.slot.place, w.slot.place_in_memory()) {
                // Tiles with marks of their own are apart, and so are their elements.
                (TileStorage::Private(tile, first), _) => {
                    let number = u64::from(tile.as_u32()) << 32 | first as u64;
                    let size = w.slot.ty.dtype.size() as u64;
                    Home::Private(number, w.slot.room() as u64 * size)
                }
                (_, Some(bytes)) if w.slot.is_mask() => Home::Masks(w.slot.ty.loc, bytes.start * 8..bytes.end * 8),
                (_, bytes) => Home::Space(w.slot.ty.loc, bytes.unwrap_or(0..0)),
            },
        }
    }

    /// The bytes (of a placed mask: bits) of an element in its home.
    fn footprint(&self, side: &BoundSide<'_>, spot: Spot) -> Range<u64> {
        match (side, spot) {
            (BoundSide::Tile { w, .. }, Spot::Tile(r, c)) => {
                let index = w.slot.index(w.part.row + r, w.part.col + c);
                let size = w.slot.ty.dtype.size() as u64;
                match w.slot.place {
                    TileStorage::Private(..) => index as u64 * size..(index as u64 + 1) * size,
                    TileStorage::Space(_) => w.slot.footprint(index),
                }
            }
            (BoundSide::Tensor { elem, .. }, Spot::Element(n)) => {
                let n = u64::try_from(n).unwrap_or(u64::MAX);
                match elem {
                    Elem::U4 | Elem::I4 => n / 2..(n / 2).saturating_add(1),
                    Elem::Whole(dtype) => {
                        let start = n.saturating_mul(dtype.size() as u64);
                        start..start.saturating_add(dtype.size() as u64)
                    }
                }
            }
            _ => 0..0,
        }
    }

    // ---- runs ----------------------------------------------------------------------------------------------------

    /// Uses the places of points whose coordinate `inner` is in a range; `sum` is what tables add.
    fn side_run(
        &mut self,
        kind: ElementUse,
        side: &BoundSide<'_>,
        (at, inner): (&mut [i64], usize),
        range: Range<i64>,
        sum: i128,
    ) -> TrapResult {
        if range.is_empty() {
            return Ok(());
        }
        let count = (range.end - range.start) as u64;
        let was = std::mem::replace(&mut at[inner], range.start);
        let result = match side {
            BoundSide::Tensor { tensor, elem, at: line, .. } => {
                let start = line.at(at).and_then(|n| n.checked_add(sum)).and_then(|n| i64::try_from(n).ok());
                let run = ElementRun { start: start.unwrap_or(-1), step: line.strides[inner], count };
                self.run(kind, *tensor, Some(*elem), run)
            }
            BoundSide::Tile { w, at: window, row, col } => {
                let first = (row.at(at), col.at(at));
                at[inner] = range.end - 1;
                let last = (row.at(at), col.at(at));
                match (inside(w, window, first), inside(w, window, last), w.slot.steps()) {
                    (Some((r, c)), Some(_), Some((down, right))) => {
                        let step = row.strides[inner] * down as i64 + col.strides[inner] * right as i64;
                        let start = w.slot.index(w.part.row + r, w.part.col + c);
                        let line = Elements { start, step: step as isize, count: count as usize };
                        self.tile_line(kind, w, line)
                    }
                    _ => self.fault(wording::outside_window(self.s.kernel, window, origin(w), last)),
                }
            }
        };
        at[inner] = was;
        result
    }

    fn tile_line(&mut self, kind: ElementUse, w: &BoundWindow<'_>, line: Elements) -> TrapResult {
        self.note_line(w, line, kind != ElementUse::Read);
        if kind != ElementUse::Read {
            self.tiles.write(&w.slot, line);
            return Ok(());
        }
        match self.tiles.may_read(&w.slot, line) {
            true => Ok(()),
            // Which one it is, is found point by point.
            false => self.fault(wording::poison(self.s.kernel, w.tile, (0, 0))),
        }
    }

    // ---- points --------------------------------------------------------------------------------------------------

    /// What the tables of a side say at a point.
    fn entries(&mut self, side: &BoundSide<'_>, at: &[i64]) -> TrapResult<Entries> {
        let BoundSide::Tensor { tables, .. } = side else { return Ok(Entries::Sum(0)) };
        let mut sum = 0i128;
        for table in tables {
            let n = table.at.at(at).and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
            self.element(ElementUse::Read, table.tensor, None, n)?;
            let Some(memory) = table.memory else { return Ok(Entries::Wrong) };
            let dtype = self.s.tensors[table.tensor].dtype;
            // SAFETY: the entry is inside the tensor, as the line above has seen.
            let bits = unsafe { memory.element(0, n, dtype.size()) };
            match led(table.oob, scalar::to_int(Ty::D(dtype), bits), i128::from(table.extent)) {
                Led::To(entry) => sum += i128::from(entry) * i128::from(table.stride),
                Led::Nowhere => return Ok(Entries::Nothing),
                Led::Wrong => return Ok(Entries::Wrong),
            }
        }
        Ok(Entries::Sum(sum))
    }

    fn spot(&mut self, side: &BoundSide<'_>, at: &[i64], watch: &mut Watch) -> TrapResult<Spot> {
        match side {
            BoundSide::Tile { w, at: window, row, col } => {
                let place = (row.at(at), col.at(at));
                match inside(w, window, place) {
                    Some((r, c)) => Ok(Spot::Tile(r, c)),
                    None => self.fault(wording::outside_window(self.s.kernel, window, origin(w), place)),
                }
            }
            BoundSide::Tensor { at: line, swizzle, tables, .. } => {
                let sum = match self.entries(side, at)? {
                    Entries::Sum(sum) => sum,
                    Entries::Nothing => return Ok(Spot::Nothing),
                    Entries::Wrong => return Ok(Spot::Wrong),
                };
                for table in tables.iter().filter(|t| Some(t.tensor) == watch.written) {
                    let n = table.at.at(at).and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
                    let size = self.s.tensors[table.tensor].dtype.size() as u64;
                    if !watch.traffic.read(n * size..(n + 1) * size) {
                        let name = &self.s.kernel.tensors[table.tensor].name;
                        return self.fault(wording::table_conflict(name, n as i64));
                    }
                }
                let n = line.at(at).and_then(|n| n.checked_add(sum)).and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
                Ok(Spot::Element(swizzle.map_or(n, |s| s.apply(n))))
            }
        }
    }

    fn read_point(&mut self, side: &BoundSide<'_>, meets: bool, at: &[i64], watch: &mut Watch) -> TrapResult<Spot> {
        let spot = self.spot(side, at, watch)?;
        if matches!(spot, Spot::Tile(..) | Spot::Element(_)) {
            self.touch(ElementUse::Read, side, spot)?;
            if meets && !watch.traffic.read(self.footprint(side, spot)) {
                return self.fault(wording::conflict(&self.describe(side, spot), Meeting::Read, ""));
            }
        }
        Ok(spot)
    }

    fn note_write(&mut self, side: &BoundSide<'_>, spot: Spot, watch: &mut Watch, what: &str) -> TrapResult {
        // An element outside is reported by the write itself.
        let how = match watch.traffic.write(self.footprint(side, spot)) {
            Ok(()) => return Ok(()),
            Err(Conflict::Twice) => Meeting::Twice,
            Err(Conflict::ReadToo) => Meeting::ReadToo,
        };
        self.fault(wording::conflict(&self.describe(side, spot), how, what))
    }

    fn touch(&mut self, kind: ElementUse, side: &BoundSide<'_>, spot: Spot) -> TrapResult {
        match (side, spot) {
            (BoundSide::Tensor { tensor, elem, .. }, Spot::Element(n)) => self.element(kind, *tensor, Some(*elem), n),
            (BoundSide::Tile { w, .. }, Spot::Tile(r, c)) if kind == ElementUse::Read => self.read_one(w, r, c),
            (BoundSide::Tile { w, .. }, Spot::Tile(r, c)) => {
                self.write(w, ElementRect { row: w.part.row + r, col: w.part.col + c, rows: 1, cols: 1 });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn describe(&self, side: &BoundSide<'_>, spot: Spot) -> String {
        match (side, spot) {
            (BoundSide::Tile { w, .. }, Spot::Tile(r, c)) => {
                wording::tile_element(self.s.kernel, w.tile, (w.part.row + r, w.part.col + c))
            }
            (BoundSide::Tensor { tensor, elem, .. }, Spot::Element(n)) => {
                let (name, t) = (&self.s.kernel.tensors[*tensor].name, &self.s.tensors[*tensor]);
                wording::tensor_element(name, t.dtype, *elem, n, |at| t.coordinates(at))
            }
            _ => String::new(),
        }
    }

    fn watch(&self, dst: &BoundSide<'_>, sources: &[&BoundSide<'_>], writes: u64) -> Watch {
        let home = self.home(dst);
        let written = match dst {
            BoundSide::Tensor { tensor, .. } => Some(*tensor),
            BoundSide::Tile { .. } => None,
        };
        let looked_up = |side: &BoundSide<'_>| match side {
            BoundSide::Tensor { tables, .. } => tables.iter().any(|t| Some(t.tensor) == written),
            BoundSide::Tile { .. } => false,
        };
        let shared = sources.iter().any(|s| self.home(s).meets(&home) || looked_up(s)) || looked_up(dst);
        Watch { traffic: Traffic::new(&home, writes, shared), home, written }
    }
}

impl Limit {
    fn holds(&self, at: &[i64]) -> bool {
        self.at.at(at).is_some_and(|n| n < i128::from(self.bound))
    }

    /// The points of a range along axis `inner` at which it holds.
    fn held(&self, at: &[i64], inner: usize, range: Range<i64>) -> Range<i64> {
        let step = i128::from(self.at.strides[inner]);
        let Some(first) = self.at.at(at).and_then(|n| n.checked_sub(step * i128::from(at[inner]))) else { return 0..0 };
        // first + i * step < bound
        let room = i128::from(self.bound) - first;
        let clamp = |n: i128| n.clamp(i128::from(range.start), i128::from(range.end)) as i64;
        match step {
            0 if room > 0 => range,
            0 => 0..0,
            1.. => range.start..clamp((room - 1).div_euclid(step) + 1),
            _ => clamp((-room).div_euclid(-step) + 1)..range.end,
        }
    }
}

impl Rows<'_> {
    /// The next row's first point. False if there is none.
    fn next(&self, at: &mut [i64]) -> bool {
        for axis in (0..self.extents.len()).filter(|&axis| axis != self.inner) {
            at[axis] += 1;
            if at[axis] < self.extents[axis] {
                return true;
            }
            at[axis] = 0;
        }
        false
    }
}

/// The next point, the first axis fastest. False if there is none.
fn next(extents: &[i64], at: &mut [i64]) -> bool {
    for (i, &extent) in at.iter_mut().zip(extents) {
        *i += 1;
        if *i < extent {
            return true;
        }
        *i = 0;
    }
    false
}

/// Row and column of the window, if the place is inside.
fn inside(w: &BoundWindow<'_>, t: &TileRef, (r, c): (Option<i128>, Option<i128>)) -> Option<(usize, usize)> {
    let axis = |at: Option<i128>, window: u32, origin: usize, capacity: u32| {
        let at = usize::try_from(at?).ok()?;
        (at < window as usize && origin + at < capacity as usize).then_some(at)
    };
    Some((axis(r, t.rows, w.part.row, w.slot.ty.rows)?, axis(c, t.cols, w.part.col, w.slot.ty.cols)?))
}

fn origin(w: &BoundWindow<'_>) -> (usize, usize) {
    (w.part.row, w.part.col)
}

/// Whether the places move evenly along every axis.
fn even(side: &BoundSide<'_>) -> bool {
    match side {
        BoundSide::Tile { w, .. } => w.slot.steps().is_some(),
        BoundSide::Tensor { swizzle, .. } => swizzle.is_none(),
    }
}

/// The longest axis along which no table moves.
fn inner_axis(extents: &[i64], sides: &[&BoundSide<'_>]) -> Option<usize> {
    let still = |axis: usize| {
        sides.iter().all(|side| match side {
            BoundSide::Tensor { tables, .. } => tables.iter().all(|t| t.at.strides[axis] == 0),
            BoundSide::Tile { .. } => true,
        })
    };
    (0..extents.len()).filter(|&axis| still(axis)).max_by_key(|&axis| extents[axis])
}

/// Whether all points have places of their own. Not if that takes more than comparing strides.
fn distinct(side: &BoundSide<'_>, extents: &[i64]) -> bool {
    let strides: Vec<i128> = match side {
        BoundSide::Tile { w, row, col, .. } => {
            let Some((down, right)) = w.slot.steps() else { return false };
            let strides = row.strides.iter().zip(&col.strides);
            strides.map(|(&r, &c)| i128::from(r) * down as i128 + i128::from(c) * right as i128).collect()
        }
        BoundSide::Tensor { at, swizzle: None, tables, elem: Elem::Whole(_), .. } if tables.is_empty() => {
            at.strides.iter().map(|&s| i128::from(s)).collect()
        }
        BoundSide::Tensor { .. } => return false,
    };
    let axes = strides.iter().zip(extents).filter(|(_, extent)| **extent > 1);
    let mut axes: Vec<(i128, i128)> = axes.map(|(s, &e)| (s.abs(), i128::from(e))).collect();
    axes.sort_unstable();
    let mut reach = 0i128;
    axes.into_iter().all(|(stride, extent)| {
        let apart = stride > reach;
        reach += stride * (extent - 1);
        apart
    })
}

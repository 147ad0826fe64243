//! Operands that are windows of arrays: where they lie, as boxes of an array whose rows are dense.

use super::images::unfolded;
use super::{Finder, Image, Nibbles, Pages, TableRows, UNIT_ROWS, no};
use crate::contraction::{From, load, moved, product};
use crate::matrix_unit::{Number, launch_number};
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{NestAccess, Op, Region, Stmt, TensorDir, TensorId, Tile, TileRef, Value, ViewRef};
use ptoc_isa::Loc;
use ptoc_tensor::DType;

/// An operand that bulk copies bring, or a tile that is computed with.
#[derive(Clone, Debug)]
pub struct OperandLoad {
    /// The operand.
    pub operand: Tile,
    /// The tile that is loaded: the operand, or one that is moved to it.
    pub filled: Tile,
    /// The array.
    pub tensor: u32,
    /// Elements from one dense row of the array to the next, and all of its elements.
    pub pitch: Number,
    /// See above.
    pub total: Number,
    /// The window's first element: its place in its dense row, and which row that is.
    pub at: [Poly; 2],
    /// Neighbours in memory are neighbours in a column of the tile, not in a row.
    pub turned: bool,
    /// Dense lines of a window, and elements of each.
    pub lines: u32,
    /// See above.
    pub length: u32,
    /// Lines of a slot: those of a left operand that the unit reads are 64 at least.
    pub held: u32,
    /// The window, or the pages that it is made of.
    pub source: OperandSource,
    /// Bulk copies can bring its array in every launch; else a launch says whether they can.
    pub aligned: bool,
    /// Whether its rows or its columns (0, 1) are how deep products are, which may be fewer than the tile's: the others
    /// have to be zeros then.
    pub depth: Option<usize>,
    /// Slots of shared memory: iterations that the author wants under way at once; 1 outside of loops.
    pub slots: u32,
    /// Bytes of an element.
    pub element: u32,
    /// It is no operand: threads take their elements from its slots, and compute with them.
    pub staged: bool,
}

/// What an operand is loaded from.
#[derive(Clone, Debug)]
pub enum OperandSource {
    /// A window of rows and columns.
    Window(ViewRef),
    /// Pages that a table lists.
    Pages(Pages),
    /// Rows that a table lists, of which some may be missing.
    Rows(TableRows),
    /// A part of an unfolded image.
    Image(Image),
    /// Half bytes of rows, to be computed with.
    Nibbles(Nibbles),
}

/// Bytes of a part of a line, what swizzles exchange within, and how many factors of products those are.
pub const PART_BYTES: u32 = 128;
/// See above.
pub const PART: u32 = PART_BYTES / FACTOR;
/// Bytes of a factor.
pub(super) const FACTOR: u32 = 2;

/// What parts are multiples of: the swizzle's pattern.
const PATTERN: u32 = 1024;

/// Bytes of shared memory that each CTA has beside its own.
const RESERVED: u64 = 1024;

/// Slots of a loop at most, which loops that only add up have: a slot is free one step later there. With fewer than
/// these a second CTA is not worth it.
const SLOTS: u32 = 4;
const LEAST: u32 = 3;

/// Bytes that loads of a CTA should have under way, so that memory's latency is hidden (Little's law: 4.8 TB/s and 0.8
/// us are 29 KB for each of 132 multiprocessors), and the slots that windows of less than that have at most.
const UNDER_WAY: u32 = 32 << 10;
const MANY_SLOTS: u32 = 8;

impl OperandLoad {
    /// Parts of each line.
    pub fn parts(&self) -> u32 {
        (self.length * self.element).div_ceil(PART_BYTES)
    }

    /// Bytes of a part of a line: 128, or of tiles that are computed with as few as they have.
    pub fn line_bytes(&self) -> u32 {
        if self.staged { PART_BYTES.min(self.length * self.element) } else { PART_BYTES }
    }

    /// Bytes of the parts of all lines that lie in front of the next ones.
    pub fn part_bytes(&self) -> u32 {
        (self.held * self.line_bytes()).next_multiple_of(PATTERN)
    }

    /// Lines that a bulk copy brings.
    pub fn box_lines(&self) -> u32 {
        match &self.source {
            OperandSource::Pages(pages) => pages.lines,
            _ => self.lines,
        }
    }

    /// Threads bring some windows element by element: of arrays that bulk copies cannot bring, and those that are less
    /// deep than others.
    pub fn by_threads(&self) -> bool {
        !self.staged && (!self.aligned || self.depth.is_some() || self.is_listed())
    }

    /// The launch says whether bulk copies can bring its array. Where they cannot, threads load what they compute with.
    pub fn is_told(&self) -> bool {
        self.by_threads() || !self.aligned
    }

    /// Bulk copies bring none of its windows: its rows are anywhere.
    pub fn is_listed(&self) -> bool {
        matches!(self.source, OperandSource::Rows(_) | OperandSource::Image(_))
    }

    /// The tile of the image that it is a part of.
    pub fn image(&self) -> Option<Tile> {
        match &self.source {
            OperandSource::Image(image) => Some(image.tile),
            _ => None,
        }
    }

    /// Its pages are looked up in a table, whose entries are checked.
    pub fn is_paged(&self) -> bool {
        matches!(self.source, OperandSource::Pages(_))
    }

    /// Bytes of all slots, and of two barriers each.
    pub fn bytes(&self) -> u32 {
        self.slots * (self.parts() * self.part_bytes() + 16)
    }
}

/// What rows of an array are multiples of, in bytes, for bulk copies.
const ALIGNED: i64 = 16;

impl Finder<'_> {
    /// As many slots as the author's stages, and as shared memory has room for: of two CTAs where a block has the rows
    /// of one warp-group, as one computes while products of the other are under way.
    pub(super) fn slots(&mut self, capacity: u64) -> Result<(), String> {
        self.deepen();
        let wanted: Vec<u32> = self.loads.iter().map(|l| l.slots).collect();
        let enough = |l: &OperandLoad| l.slots >= LEAST || wanted.iter().all(|n| *n < SLOTS);
        if self.rows <= 64 && self.shrink((capacity + RESERVED) / 2 - RESERVED) && self.loads.iter().all(enough) {
            return Ok(());
        }
        self.loads.iter_mut().zip(&wanted).for_each(|(load, slots)| load.slots = *slots);
        if self.shrink(capacity) {
            return Ok(());
        }
        if !self.loads.iter().any(|l| l.staged) {
            return no("operands of its products do not fit into shared memory");
        }
        self.loads.iter_mut().zip(wanted).for_each(|(load, slots)| load.slots = slots);
        self.loads.retain(|l| !l.staged);
        self.slots(capacity)
    }

    /// Loops whose steps are small are so many steps ahead that enough is under way.
    fn deepen(&mut self) {
        let of_loops = self.loads.iter_mut().filter(|l| l.slots > 1).collect::<Vec<_>>();
        let step: u32 = of_loops.iter().map(|l| l.parts() * l.part_bytes()).sum();
        let enough = UNDER_WAY.div_ceil(step.max(1)).min(MANY_SLOTS);
        of_loops.into_iter().for_each(|l| l.slots = l.slots.max(enough));
    }

    /// Takes slots away until the rest has room; whether it has.
    fn shrink(&mut self, room: u64) -> bool {
        let bytes =
            |loads: &[OperandLoad]| u64::from(PATTERN) + loads.iter().map(|l| u64::from(l.bytes())).sum::<u64>();
        while bytes(&self.loads) > room {
            match self.loads.iter_mut().max_by_key(|l| l.slots) {
                Some(most) if most.slots > 1 => most.slots -= 1,
                _ => return false,
            }
        }
        true
    }

    /// Every load of a region: to operands of products, on the shortest way, or to registers.
    pub(super) fn loads(&mut self, region: &Region, slots: u32) -> Result<(), String> {
        for stmt in region {
            self.unfold(stmt, region, slots)?;
            if let Some((tile, view)) = load(&stmt.op)
                && !self.images.contains_key(&tile.tile)
            {
                self.load(&tile, view, region, slots)?;
            }
            if let Op::Copy(copy) = &stmt.op
                && copy.dst.tile().is_some()
            {
                match self.nibbles(copy, slots) {
                    Some(nibbles) => self.loads.push(nibbles),
                    None => {
                        let (tile, place) = self.pages(copy, stmt.span)?;
                        self.operand(&tile, place, region, slots)?;
                    }
                }
            }
            match &stmt.op {
                Op::For(f) => {
                    let least = if adds_up(&f.body) { SLOTS } else { 2 };
                    self.loads(&f.body, f.stages.clamp(least, SLOTS))?;
                }
                Op::If(i) => [&i.then, &i.els].into_iter().try_for_each(|r| self.loads(r, slots))?,
                _ => {}
            }
        }
        Ok(())
    }

    fn load(&mut self, tile: &TileRef, view: &ViewRef, region: &[Stmt], slots: u32) -> Result<(), String> {
        let name = &self.kernel.tensors[view.tensor].name;
        if self.is_beside(tile, view) && self.moved_on(tile, region).is_none() {
            self.beside.insert(tile.tile);
            self.stage(tile, view, slots);
            return Ok(());
        }
        let place = self.place(tile, view).ok_or_else(|| {
            format!("where the rows of `{name}` lie does not follow from the launch, as bulk copies need it")
        })?;
        self.operand(tile, place, region, slots)
    }

    /// The operand that a tile is moved to, which is all that is done with it; itself, if it is one.
    fn moved_on(&self, tile: &TileRef, region: &[Stmt]) -> Option<TileRef> {
        if matches!(self.ty(tile.tile).0, Loc::Left | Loc::Right) {
            return Some(*tile);
        }
        let mut moves = region.iter().filter_map(|s| moved(&s.op)).filter(|(_, from)| from.tile == tile.tile);
        let reads = self.uses.get(&tile.tile).map_or(0, |u| u.reads);
        match (moves.next(), moves.next()) {
            (Some((to, _)), None) if reads == 1 => Some(to),
            _ => None,
        }
    }

    /// A tile that is filled so, as an operand of products.
    pub(super) fn operand(
        &mut self,
        tile: &TileRef,
        place: OperandLoad,
        region: &[Stmt],
        slots: u32,
    ) -> Result<(), String> {
        let kernel = self.kernel;
        let tensor = &kernel.tensors[TensorId::from_u32(place.tensor)];
        let name = &kernel.tiles[tile.tile].name;
        let uses = |t| self.uses.get(&t).copied().unwrap_or_default();
        let Some(operand) = self.moved_on(tile, region) else {
            return no(format!("`{name}` is not moved once, to an operand"));
        };
        let products = reads(region, operand.tile);
        let fits = matches!(self.ty(operand.tile).0, Loc::Left | Loc::Right)
            && self.ty(operand.tile).1 == tensor.dtype
            && self.ty(tile.tile).1 == tensor.dtype
            && operand.valid == tile.valid
            && (operand.rows, operand.cols) == (tile.rows, tile.cols);
        if !fits || products == 0 || products != uses(operand.tile).reads {
            return no(format!("`{name}` is loaded, and is no operand of products alone"));
        }
        if uses(operand.tile).writes != 1 || uses(tile.tile).writes != 1 || tensor.dir != TensorDir::In {
            return no(format!("`{name}` is written more than once, or is no input"));
        }
        let held = match self.ty(operand.tile).0 {
            Loc::Left if !place.turned => place.lines.max(UNIT_ROWS),
            _ => place.lines,
        };
        let (operand, filled) = (operand.tile, tile.tile);
        self.filled.extend((filled != operand).then_some(filled));
        self.loads.push(OperandLoad { operand, filled, held, slots, ..place });
        Ok(())
    }

    /// Whether threads can load their own elements.
    fn is_beside(&self, tile: &TileRef, view: &ViewRef) -> bool {
        let tensor = &self.kernel.tensors[view.tensor];
        let (loc, dtype) = self.ty(tile.tile);
        let known = matches!(dtype, DType::F32 | DType::I32 | DType::F16 | DType::BF16 | DType::U8 | DType::I8);
        let same = dtype == tensor.dtype && view.shape[..] == [tile.valid.0, tile.valid.1] && view.strides.len() == 2;
        loc == Loc::Vec && known && same && tensor.dir == TensorDir::In && self.fragment(tile.tile).is_ok()
    }

    /// Lines that are anywhere in an array.
    pub(super) fn listed(&self, tile: &TileRef, tensor: TensorId, source: OperandSource) -> Option<OperandLoad> {
        // No map of it is looked at.
        let one = launch_number(self.kernel, &Poly::constant(1))?;
        Some(OperandLoad {
            operand: tile.tile,
            filled: tile.tile,
            tensor: tensor.as_u32(),
            pitch: one.clone(),
            total: one,
            at: [Poly::constant(0), Poly::constant(0)],
            turned: false,
            lines: tile.rows,
            length: tile.cols,
            held: tile.rows,
            source,
            aligned: false,
            depth: None,
            slots: 1,
            element: FACTOR,
            staged: false,
        })
    }

    /// The window as lines of an array with dense rows.
    pub(super) fn place(&self, tile: &TileRef, view: &ViewRef) -> Option<OperandLoad> {
        let [rows, cols] = view.shape[..] else { return None };
        if (rows, cols) != tile.valid || view.strides.len() != 2 {
            return None;
        }
        let strides = [self.defs.poly(view.strides[0])?, self.defs.poly(view.strides[1])?];
        let turned = strides[1].number() != Some(1);
        let (dense, pitch) = if turned { (&strides[0], &strides[1]) } else { (&strides[1], &strides[0]) };
        let (lines, length) = if turned { (tile.cols, tile.rows) } else { (tile.rows, tile.cols) };
        let element = self.kernel.tensors[view.tensor].dtype.size() as u32;
        let aligned = pitch.terms().iter().all(|(_, n)| n * i64::from(element) % ALIGNED == 0);
        if dense.number() != Some(1) || pitch.terms().len() != 1 || lines > 256 {
            return None;
        }
        let total = self.elements_of(view.tensor)?;
        let at = self.coordinates(view.offset, pitch)?;
        let (pitch, total) = (launch_number(self.kernel, pitch)?, launch_number(self.kernel, &total)?);
        let (operand, filled) = (tile.tile, tile.tile);
        let (tensor, slots, depth) = (view.tensor.as_u32(), 1, None);
        Some(OperandLoad {
            operand,
            filled,
            tensor,
            pitch,
            total,
            at,
            turned,
            lines,
            length,
            held: lines,
            source: OperandSource::Window(view.clone()),
            aligned,
            depth,
            slots,
            element,
            staged: false,
        })
    }
}

impl Finder<'_> {
    /// All elements of an array.
    pub(super) fn elements_of(&self, tensor: TensorId) -> Option<Poly> {
        let one = Some(Poly::constant(1));
        self.kernel.tensors[tensor].shape.iter().fold(one, |all, extent| all?.times(&self.defs.poly(*extent)?))
    }

    /// An element of an array with such rows: its place in its row, and which row that is.
    pub(super) fn coordinates(&self, offset: Value, pitch: &Poly) -> Option<[Poly; 2]> {
        let mut at = [Poly::constant(0), Poly::constant(0)];
        for term in self.defs.poly(offset)?.terms() {
            let term = Poly::sum_of(vec![term.clone()])?;
            match term.divided(pitch) {
                Some(row) => at[1] = at[1].plus(&row, 1)?,
                None => at[0] = at[0].plus(&term, 1)?,
            }
        }
        Some(at)
    }
}

/// Whether a loop is one product, which is added to an accumulator.
fn adds_up(body: &[Stmt]) -> bool {
    let products: Vec<From> = body.iter().filter_map(|s| product(&s.op)).map(|(_, start)| start).collect();
    products == [From::Acc] && body.iter().all(|s| s.op.regions().next().is_none())
}

/// The tile that a statement fills from memory.
pub fn filled_by(op: &Op) -> Option<Tile> {
    match op {
        Op::Copy(copy) => match &copy.dst {
            NestAccess::Tile { tile, .. } => Some(tile.tile),
            NestAccess::Tensor { .. } => None,
        },
        op => unfolded(op).map(|(part, ..)| part.tile).or_else(|| load(op).map(|(t, _)| t.tile)),
    }
}

/// How many products of a region, and of regions in it, have a tile as an operand.
fn reads(region: &[Stmt], tile: Tile) -> u32 {
    let of = |stmt: &Stmt| -> u32 {
        let own = product(&stmt.op).is_some_and(|(p, _)| p.a.tile == tile || p.b.tile == tile);
        u32::from(own) + stmt.op.regions().map(|r| reads(r, tile)).sum::<u32>()
    };
    region.iter().map(of).sum()
}

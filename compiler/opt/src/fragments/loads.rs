//! Operands that are windows of arrays: where they lie, as boxes of an array whose rows are dense.

use super::{Finder, no};
use crate::contraction::{load, moved, product};
use crate::matrix_unit::{Number, launch_number};
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{Op, Region, Stmt, TensorDir, Tile, TileRef, ViewRef};
use ptoc_isa::Loc;
use ptoc_tensor::DType;

/// An operand that bulk copies bring.
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
    /// The window.
    pub view: ViewRef,
    /// Bulk copies can bring its array in every launch; else a launch says whether they can.
    pub aligned: bool,
    /// Whether its rows or its columns (0, 1) are how deep products are, which may be fewer than the tile's: the others
    /// have to be zeros then.
    pub depth: Option<usize>,
    /// Slots of shared memory: iterations that the author wants under way at once; 1 outside of loops.
    pub slots: u32,
}

/// Elements of a part of a line: 128 bytes, what swizzles exchange within.
pub const PART: u32 = 64;

/// What parts are multiples of: the swizzle's pattern.
const PATTERN: u32 = 1024;

/// Bytes of shared memory that each CTA has beside its own.
const RESERVED: u64 = 1024;

/// Rows of a product.
const UNIT_ROWS: u32 = 64;

/// Slots of a loop at most.
const SLOTS: u32 = 4;

impl OperandLoad {
    /// Parts of each line.
    pub fn parts(&self) -> u32 {
        self.length.div_ceil(PART)
    }

    /// Bytes of the parts of all lines that lie in front of the next ones.
    pub fn part_bytes(&self) -> u32 {
        (self.held * 2 * PART).next_multiple_of(PATTERN)
    }

    /// Threads bring some windows element by element: of arrays that bulk copies cannot bring, and those that are less
    /// deep than others.
    pub fn by_threads(&self) -> bool {
        !self.aligned || self.depth.is_some()
    }

    /// Bytes of all slots, and of two barriers each.
    pub fn bytes(&self) -> u32 {
        self.slots * (self.parts() * self.part_bytes() + 16)
    }
}

/// What rows of an array are multiples of, in elements of two bytes: 16 bytes, for bulk copies.
const ALIGNED: i64 = 8;

impl Finder<'_> {
    /// As many slots as the author's stages, and as shared memory has room for: of two CTAs where a block has the rows
    /// of one warp-group, as one computes while products of the other are under way.
    pub(super) fn slots(&mut self, capacity: u64) -> Result<(), String> {
        let wanted: Vec<u32> = self.loads.iter().map(|l| l.slots).collect();
        if self.rows <= 64 && self.shrink((capacity + RESERVED) / 2 - RESERVED) {
            return Ok(());
        }
        self.loads.iter_mut().zip(wanted).for_each(|(load, slots)| load.slots = slots);
        match self.shrink(capacity) {
            true => Ok(()),
            false => no("operands of its products do not fit into shared memory"),
        }
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
            if let Some((tile, view)) = load(&stmt.op) {
                self.load(&tile, view, region, slots)?;
            }
            match &stmt.op {
                Op::For(f) => self.loads(&f.body, f.stages.clamp(2, SLOTS))?,
                Op::If(i) => [&i.then, &i.els].into_iter().try_for_each(|r| self.loads(r, slots))?,
                _ => {}
            }
        }
        Ok(())
    }

    fn load(&mut self, tile: &TileRef, view: &ViewRef, region: &[Stmt], slots: u32) -> Result<(), String> {
        let kernel = self.kernel;
        let tensor = &kernel.tensors[view.tensor];
        let name = &kernel.tiles[tile.tile].name;
        let uses = |t| self.uses.get(&t).copied().unwrap_or_default();
        let mut operand = *tile;
        if matches!(self.ty(tile.tile).0, Loc::Mat | Loc::Vec) {
            let mut moves = region.iter().filter_map(|s| moved(&s.op)).filter(|(_, from)| from.tile == tile.tile);
            match (moves.next(), moves.next()) {
                (Some((to, _)), None) if uses(tile.tile).reads == 1 => operand = to,
                _ if self.is_beside(tile, view) => {
                    self.beside.insert(tile.tile);
                    return Ok(());
                }
                _ => return no(format!("`{name}` is not moved once, to an operand")),
            }
        }
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
        let place = self.place(tile, view).ok_or_else(|| {
            format!("where the rows of `{}` lie does not follow from the launch, as bulk copies need it", tensor.name)
        })?;
        let held = match self.ty(operand.tile).0 {
            Loc::Left if !place.turned => place.lines.max(UNIT_ROWS),
            _ => place.lines,
        };
        let (operand, filled) = (operand.tile, tile.tile);
        self.filled.extend((filled != operand).then_some(filled));
        let tensor = view.tensor.as_u32();
        self.loads.push(OperandLoad { operand, filled, tensor, held, slots, ..place });
        Ok(())
    }

    /// Whether threads can load their own elements.
    fn is_beside(&self, tile: &TileRef, view: &ViewRef) -> bool {
        let tensor = &self.kernel.tensors[view.tensor];
        let (loc, dtype) = self.ty(tile.tile);
        let known = matches!(dtype, DType::F32 | DType::I32 | DType::F16 | DType::BF16);
        let same = dtype == tensor.dtype && view.shape[..] == [tile.valid.0, tile.valid.1] && view.strides.len() == 2;
        loc == Loc::Vec && known && same && tensor.dir == TensorDir::In && self.fragment(tile.tile).is_ok()
    }

    /// The window as lines of an array with dense rows.
    fn place(&self, tile: &TileRef, view: &ViewRef) -> Option<OperandLoad> {
        let [rows, cols] = view.shape[..] else { return None };
        if (rows, cols) != tile.valid || view.strides.len() != 2 {
            return None;
        }
        let strides = [self.defs.poly(view.strides[0])?, self.defs.poly(view.strides[1])?];
        let turned = strides[1].number() != Some(1);
        let (dense, pitch) = if turned { (&strides[0], &strides[1]) } else { (&strides[1], &strides[0]) };
        let (lines, length) = if turned { (tile.cols, tile.rows) } else { (tile.rows, tile.cols) };
        let aligned = pitch.terms().iter().all(|(_, n)| n % ALIGNED == 0);
        if dense.number() != Some(1) || pitch.terms().len() != 1 || lines > 256 {
            return None;
        }
        let mut total = Poly::constant(1);
        for extent in &self.kernel.tensors[view.tensor].shape {
            total = total.times(&self.defs.poly(*extent)?)?;
        }
        let mut at = [Poly::constant(0), Poly::constant(0)];
        for term in self.defs.poly(view.offset)?.terms() {
            let term = Poly::sum_of(vec![term.clone()])?;
            match term.divided(pitch) {
                Some(row) => at[1] = at[1].plus(&row, 1)?,
                None => at[0] = at[0].plus(&term, 1)?,
            }
        }
        let (pitch, total) = (launch_number(self.kernel, pitch)?, launch_number(self.kernel, &total)?);
        let (operand, filled) = (tile.tile, tile.tile);
        let (tensor, slots, view, depth) = (0, 1, view.clone(), None);
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
            view,
            aligned,
            depth,
            slots,
        })
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

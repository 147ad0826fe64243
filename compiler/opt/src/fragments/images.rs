//! Left operands that are unfolded images (im2col): a row is a pixel of the result, its columns are the channels that
//! the taps of the kernel meet, and zeros beyond the edges. The image stays where it is; a producer's threads find the
//! place of every eight channels (implicit GEMM).

use super::{Finder, OperandLoad, OperandSource, no};
use crate::contraction::load;
use ptoc_ir::tile::{Inst, Op, Operand, Region, Stmt, Tile, TileRef, Value, ViewRef};
use ptoc_isa::BinOp;
use ptoc_placement::access::is_whole;
use ptoc_tensor::DType;

/// An image as TIMG2COL reads it: groups of channels, each a plane of rows.
#[derive(Clone, Debug)]
pub struct Image {
    /// The tile that it would be a copy of.
    pub tile: Tile,
    /// Its first element, and from pixel to pixel.
    pub start: Value,
    /// See above.
    pub pitch: Value,
    /// Channels of a group.
    pub channels: u32,
    /// Rows and columns of a plane, of the kernel, of the steps between its places, and of zeros around the plane.
    pub plane: [Value; 2],
    /// See above.
    pub kernel: [Value; 2],
    /// See above.
    pub stride: [Value; 2],
    /// See above.
    pub pad: [Value; 2],
    /// The first row and the first column of the unfolded image.
    pub at: [Value; 2],
    /// Valid rows and columns.
    pub valid: [Value; 2],
}

impl Image {
    /// The values that a block needs to find its pixels.
    pub(super) fn values(&self) -> impl Iterator<Item = Value> {
        [[self.start, self.pitch], self.plane, self.kernel, self.stride, self.pad, self.at, self.valid]
            .into_iter()
            .flatten()
    }
}

/// Neighbours that are brought at once.
const CHUNK: i64 = 8;

/// The instruction.
const UNFOLDS: &str = "TIMG2COL";

/// The tile that an instruction fills with a part of an unfolded image, and the image.
pub(super) fn unfolded(op: &Op) -> Option<(&TileRef, &TileRef, &Inst)> {
    let Op::Inst(inst) = op else { return None };
    match &inst.operands[..] {
        [Operand::Tile(part), Operand::Tile(image), ..] if inst.instr.get().name == UNFOLDS => {
            Some((part, image, inst))
        }
        _ => None,
    }
}

impl Finder<'_> {
    /// Tiles that only hold images which are unfolded: nobody has to load them.
    pub(super) fn find_images(&mut self) {
        let mut reads = Vec::new();
        collect(&self.kernel.body, &mut |stmt| {
            reads.extend(unfolded(&stmt.op).map(|(_, image, _)| image.tile));
        });
        let mut views = Vec::new();
        collect(&self.kernel.body, &mut |stmt| {
            views.extend(load(&stmt.op).filter(|(t, _)| reads.contains(&t.tile)).map(|(t, v)| (t, v.clone())));
        });
        for (tile, view) in views {
            let count = reads.iter().filter(|t| **t == tile.tile).count();
            let uses = self.uses.get(&tile.tile).copied().unwrap_or_default();
            let same = view.shape[..] == [tile.valid.0, tile.valid.1] && view.strides.len() == 2;
            if uses.writes == 1 && uses.reads as usize == count && same && is_whole(self.kernel, &tile) {
                self.images.insert(tile.tile, view);
            }
        }
    }

    /// The part of an unfolded image that an instruction makes, as an operand.
    pub(super) fn unfold(&mut self, stmt: &Stmt, region: &Region, slots: u32) -> Result<(), String> {
        let Some((part, image, inst)) = unfolded(&stmt.op) else { return Ok(()) };
        let name = &self.kernel.tiles[image.tile].name;
        let Some(view) = self.images.get(&image.tile).cloned() else {
            return no(format!("the image `{name}` is no window of an input that is only unfolded"));
        };
        let place = self.image(part, image, inst, &view).ok_or_else(|| {
            format!("the image `{name}` has no multiple of {CHUNK} channels in a group, or is unfolded from elsewhere")
        })?;
        self.operand(part, place, region, slots)
    }

    fn image(&self, part: &TileRef, image: &TileRef, inst: &Inst, view: &ViewRef) -> Option<OperandLoad> {
        let number = |n: usize| match inst.operands.get(n) {
            Some(Operand::Scalar(v)) => Some(*v),
            _ => None,
        };
        let pair = |n: usize| Some([number(n)?, number(n + 1)?]);
        let at = pair(10)?;
        // What is around the image.
        let zeros = match number(12) {
            Some(v) => self.digits(v) == Some(0),
            None => inst.operands.len() == 12,
        };
        let eights = |v: Value| self.defs.poly(v).is_some_and(|p| p.terms().iter().all(|(_, n)| n % CHUNK == 0));
        let whole =
            |v: Value| eights(v) || self.defs.binary(v, BinOp::Min).is_some_and(|(a, b)| eights(a) && eights(b));
        let dense = self.defs.number(view.strides[1]) == Some(1);
        let dtype = self.kernel.tensors[view.tensor].dtype;
        let halves = matches!(dtype, DType::F16 | DType::BF16) && self.ty(image.tile).1 == dtype;
        let channels = i64::from(image.cols) % CHUNK == 0;
        if !zeros || !dense || !halves || !channels || !eights(at[1]) || !whole(part.valid.1) {
            return None;
        }
        let source = Image {
            tile: image.tile,
            start: view.offset,
            pitch: view.strides[0],
            channels: image.cols,
            plane: pair(2)?,
            kernel: pair(4)?,
            stride: pair(6)?,
            pad: pair(8)?,
            at,
            valid: part.valid.into(),
        };
        self.listed(part, view.tensor, OperandSource::Image(source))
    }
}

fn collect(region: &Region, body: &mut impl FnMut(&Stmt)) {
    for stmt in region {
        body(stmt);
        stmt.op.regions().for_each(|r| collect(r, body));
    }
}

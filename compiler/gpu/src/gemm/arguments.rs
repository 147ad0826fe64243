//! What a launch of a product passes beside what every launch does: numbers, and a tensor map for each operand.

use crate::abi::Arguments;
use ptoc_opt::matrix_unit::{ArrayMatrix, Extent, Number, UnitProduct};
use ptoc_ptx::Type;
use ptoc_ptx::sim::{Swizzle, TensorMap};

/// Bytes of a row of shared memory: as deep a step is.
pub(crate) const ROW: u32 = 128;

/// Halves of it. What bulk copies move are halves, of smaller factors two at a time.
pub const HALVES: u32 = ROW / 2;

/// Bytes of a factor of f32.
const WORD: u32 = 4;

/// Rows (or columns) of a part, and lines, where those are side by side.
pub(crate) const PART: u32 = 64;

/// Coordinates of a box have 32 bits with a sign.
const MOST: u64 = 1 << 31;

/// Along what an operand's neighbours lie in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Major {
    /// k: rows (or columns) of 128 bytes.
    Depth,
    /// Rows of the left operand, columns of the right one: 64 of them for each k, in parts one behind the other. The
    /// cores read factors of 16 bits so.
    Side,
}

/// An operand of the product.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperandSide {
    /// The argument that it is in.
    pub tensor: u32,
    /// Elements before its first one.
    pub first: Number,
    /// Bytes of a factor.
    pub factor: u32,
    /// Elements along rows (of the left operand; columns of the right one), and along k.
    pub strides: [Number; 2],
    /// Rows, or columns, of a block.
    pub size: u32,
    /// Elements from matrix to matrix, along each dimension of the batch.
    pub batch: Vec<Number>,
    /// Along what neighbours lie.
    pub major: Major,
    /// Neighbours are next to each other in memory, so bulk copies may do.
    pub dense: bool,
    /// CTAs of a cluster that share it: each brings so many parts of a box.
    pub shared: u32,
}

impl OperandSide {
    fn new(m: &ArrayMatrix, factor: u32, side: usize, size: u32) -> OperandSide {
        let strides = [m.strides[side].clone(), m.strides[1 - side].clone()];
        let one = |n: &Number| n.number() == Some(1);
        let turned = factor == 2 && one(&strides[0]) && !one(&strides[1]);
        let major = if turned { Major::Side } else { Major::Depth };
        let dense = one(&strides[if major == Major::Depth { 1 } else { 0 }]);
        let batch = m.batch.clone();
        OperandSide { tensor: m.tensor, first: m.first.clone(), factor, strides, size, batch, major, dense, shared: 1 }
    }

    /// The dimensions of the batch along which it moves, by their place among those: they are dimensions of its map.
    pub fn moves(&self) -> impl Iterator<Item = usize> + '_ {
        self.batch.iter().enumerate().filter(|(_, n)| n.number() != Some(0)).map(|(d, _)| d)
    }

    /// Bytes of a step in shared memory.
    pub(crate) fn bytes(&self) -> u32 {
        match self.major {
            Major::Depth => self.size * ROW,
            Major::Side => self.size.div_ceil(PART) * ROW * PART,
        }
    }

    /// Boxes of a step.
    pub(crate) fn boxes(&self) -> u32 {
        if self.major == Major::Depth { 1 } else { self.size.div_ceil(PART) }
    }

    /// Rows of a box; a row has [`HALVES`].
    pub fn rows(&self) -> u32 {
        let rows = if self.major == Major::Depth { self.size } else { PART };
        rows / self.shared
    }

    /// The map by which it is copied; `None` where bulk copies cannot.
    fn map(&self, base: u64, [extent, depth]: [i64; 2], batch: &[i64], params: &[i64]) -> Option<TensorMap> {
        let bytes = |n: &Number| u64::try_from(value(n, params)).ok()?.checked_mul(u64::from(self.factor));
        let stride = bytes(&self.strides[usize::from(self.major == Major::Side)])?;
        let mut strides = vec![stride];
        for d in self.moves() {
            strides.push(bytes(&self.batch[d])?);
        }
        // What is copied are halves, of words themselves.
        let unit = i64::from(self.factor.max(2));
        let dense =
            |n: i64| n.checked_mul(i64::from(self.factor)).filter(|bytes| bytes % unit == 0).map(|bytes| bytes / unit);
        let dims = match self.major {
            Major::Depth => [dense(depth)?, extent],
            Major::Side => [dense(extent)?, depth],
        };
        let dims = dims.into_iter().chain(self.moves().map(|d| batch[d]));
        let dims: Vec<u64> = dims.map(|n| u64::try_from(n).unwrap_or(0)).collect();
        let fits = self.dense
            && base.is_multiple_of(16)
            && strides.iter().all(|n| n.is_multiple_of(16) && (16..1 << 40).contains(n))
            && dims.iter().all(|n| (1..MOST).contains(n));
        fits.then(|| match self.factor {
            WORD => words(base, dims, strides, [ROW / WORD, self.rows()]),
            _ => map(base, dims, strides, [HALVES, self.rows()]),
        })
    }
}

/// The map of halves by boxes of a matrix whose lines, of 128 bytes or fewer, are swizzled by what they have.
pub(crate) fn map(base: u64, dims: Vec<u64>, strides: Vec<u64>, tile: [u32; 2]) -> TensorMap {
    let swizzle = match tile[0] {
        16 => Swizzle::B32,
        32 => Swizzle::B64,
        _ => Swizzle::B128,
    };
    let tile = tile.into_iter().chain(std::iter::repeat(1)).take(dims.len()).collect();
    TensorMap { base, dtype: Type::F16, dims, strides, tile, swizzle, tf32: false }
}

/// The map of numbers of f32, which become TF32 on their way.
fn words(base: u64, dims: Vec<u64>, strides: Vec<u64>, tile: [u32; 2]) -> TensorMap {
    TensorMap { dtype: Type::F32, tf32: true, swizzle: Swizzle::B128, ..map(base, dims, strides, tile) }
}

/// What a launch of a product is computed from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GemmAbi {
    /// What is multiplied.
    pub operands: [OperandSide; 2],
    /// Arrays of results and of what they are made of, and the bytes of an element.
    pub arrays: Vec<(ArrayMatrix, u64)>,
    /// Rows and columns.
    pub extents: [Extent; 2],
    /// Steps along k.
    pub depth: Number,
    /// Rows and columns of a block.
    pub tile: [u32; 2],
    /// The dimensions of the grid that move along rows and columns.
    pub grid: [usize; 2],
    /// Those that count matrices.
    pub batch: Vec<usize>,
}

/// Why bulk copies cannot bring an operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// Neither rows nor columns have their elements next to each other.
    Sparse,
    /// Factors that have not two bytes lie side by side along the other side than k, along which the cores read them.
    Turned,
    /// Rows (or columns) are so many bytes apart, which is what these parameters of the launch make of it.
    Stride(i64, Vec<u32>),
    /// It begins so many bytes behind the start of its array.
    Start(i64),
}

/// Numbers behind those of every launch: rows, columns and depth; of each operand the offset of its first element and
/// two strides, in bytes; of each operand, whether its map is good; of each other array the same as of operands.
pub(super) const MAPPED: usize = 9;
pub(super) const ARRAYS: usize = 11;

/// A number of the launch. Those that count elements of an array fit 64 bits.
pub(crate) fn value(n: &Number, params: &[i64]) -> i64 {
    let term = |(factors, n): &(Vec<u32>, i64)| {
        factors.iter().fold(*n, |x, p| x.wrapping_mul(params.get(*p as usize).copied().unwrap_or(0)))
    };
    n.terms().iter().map(term).fold(0, i64::wrapping_add)
}

impl GemmAbi {
    pub(crate) fn new(p: &UnitProduct<'_>) -> GemmAbi {
        let arrays = p.epilogue.arrays.iter().map(|a| (a.matrix.clone(), a.dtype.size() as u64));
        let bias = p.bias.iter().map(|m| (m.clone(), p.sums.size() as u64));
        GemmAbi {
            operands: [
                OperandSide::new(&p.a, p.factors[0].size() as u32, 0, p.tile[0]),
                OperandSide::new(&p.b, p.factors[1].size() as u32, 1, p.tile[1]),
            ],
            arrays: arrays.chain(bias).collect(),
            extents: p.extents.clone(),
            depth: p.depth.clone(),
            tile: p.tile,
            grid: p.grid,
            batch: p.batch.clone(),
        }
    }

    /// The tensors of operands, then of other arrays.
    pub(super) fn tensors(&self) -> Vec<u32> {
        let arrays = self.arrays.iter().map(|(m, _)| m.tensor);
        self.operands.iter().map(|o| o.tensor).chain(arrays).collect()
    }

    /// Where the numbers of the batch begin: for each operand and array, bytes from matrix to matrix.
    pub(super) fn batches(&self) -> usize {
        ARRAYS + 3 * self.arrays.len()
    }

    /// How many numbers there are.
    pub(crate) fn numbers_len(&self) -> usize {
        self.batches() + self.batch.len() * (2 + self.arrays.len())
    }

    /// From matrix to matrix in each operand and array, and bytes of an element.
    pub fn batch_steps(&self) -> impl Iterator<Item = (&Number, u64)> {
        let operands = self.operands.iter().map(|o| (&o.batch, u64::from(o.factor)));
        let all = operands.chain(self.arrays.iter().map(|(m, size)| (&m.batch, *size)));
        all.flat_map(|(batch, size)| batch.iter().map(move |n| (n, size)))
    }

    /// Rows or columns, and depth.
    fn sizes(&self, a: &Arguments<'_>) -> [i64; 3] {
        let extent = |n: usize| match &self.extents[n] {
            Extent::Whole(number) => value(number, a.params),
            Extent::Tiles => a.extents[self.grid[n]].saturating_mul(i64::from(self.tile[n])),
        };
        [extent(0), extent(1), value(&self.depth, a.params).max(0)]
    }

    fn operand_maps(&self, a: &Arguments<'_>) -> [Option<TensorMap>; 2] {
        let [m, n, k] = self.sizes(a);
        [(0, m), (1, n)].map(|(which, extent)| {
            let o = &self.operands[which];
            let first = value(&o.first, a.params).wrapping_mul(o.factor.into());
            let base = a.tensors[o.tensor as usize].wrapping_add_signed(first);
            let batch: Vec<i64> = self.batch.iter().map(|d| a.extents[*d]).collect();
            o.map(base, [extent, k], &batch, a.params)
        })
    }

    /// Operands that bulk copies cannot bring, by the number of their tensor: what the launch's parameters say of it.
    /// (Arrays themselves begin at multiples of 16 bytes, if nobody passes a part of one.)
    pub fn obstacles(&self, params: &[i64]) -> Vec<(u32, Obstacle)> {
        let of = |o: &OperandSide| {
            let outer = &o.strides[usize::from(o.major == Major::Side)];
            let bytes = |n: &Number| value(n, params).wrapping_mul(o.factor.into());
            let odd = o.moves().map(|d| &o.batch[d]).find(|n| bytes(n) % 16 != 0);
            match (bytes(outer), bytes(&o.first)) {
                _ if !o.dense && o.strides[0].number() == Some(1) => Some(Obstacle::Turned),
                _ if !o.dense => Some(Obstacle::Sparse),
                (stride, _) if stride % 16 != 0 => Some(Obstacle::Stride(stride, outer.symbols().collect())),
                (_, start) if start % 16 != 0 => Some(Obstacle::Start(start)),
                _ if odd.is_some() => odd.map(|n| Obstacle::Stride(bytes(n), n.symbols().collect())),
                _ => None,
            }
        };
        self.operands.iter().filter_map(|o| Some((o.tensor, of(o)?))).collect()
    }

    /// The numbers.
    pub(crate) fn numbers(&self, a: &Arguments<'_>) -> Vec<u64> {
        let bytes = |n: &Number, size: u64| value(n, a.params).wrapping_mul(size as i64);
        let mut out = self.sizes(a).to_vec();
        for o in &self.operands {
            out.extend([&o.first, &o.strides[0], &o.strides[1]].map(|n| bytes(n, o.factor.into())));
        }
        out.extend(self.operand_maps(a).map(|map| i64::from(map.is_some())));
        for (m, size) in &self.arrays {
            out.extend([&m.first, &m.strides[0], &m.strides[1]].map(|n| bytes(n, *size)));
        }
        out.extend(self.batch_steps().map(|(n, size)| bytes(n, size)));
        out.into_iter().map(|n| n as u64).collect()
    }

    /// The maps. Where one is not good, the kernel does not look at it, but the driver does.
    pub(crate) fn maps(&self, a: &Arguments<'_>) -> Vec<TensorMap> {
        let maps = self.operand_maps(a).into_iter().zip(&self.operands);
        let unused = |o: &OperandSide| {
            let rank = 2 + o.moves().count();
            let dims = (0..rank).map(|d| if d == 0 { HALVES.into() } else { 1 }).collect();
            // A box of halves, whatever is in it.
            map(a.tensors[o.tensor as usize] & !15, dims, vec![ROW.into(); rank - 1], [HALVES, 1])
        };
        maps.map(|(map, o)| map.unwrap_or_else(|| unused(o))).collect()
    }
}

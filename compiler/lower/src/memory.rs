//! Where tiles and tensors are in the arena of a running block.
//!
//! Each memory that the kernel uses is a space of the arena, as large as what is placed in it, and a tile's bytes are
//! at its placed address. Three things are stored otherwise, because no program can see their bytes:
//! * Left and Right are row-major, without the target's fractals; those of 8-bit floats are kept widened, f32 an
//!   element, in a space that is larger by as much;
//! * a mask is one byte an element in a shadow space of eight times the size;
//! * Acc is row-major, without the target's fractals.

use super::Lower;
use super::matrix::Matrix;
use cranelift_entity::EntityRef;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::loops::{Base, CmpOp, LTy, MemTy, Reg, SpaceData, SpaceId, Stride, VarId};
use ptoc_ir::tile::{AddrKind, Kernel, Op, TensorDir, TensorId, Tile, TileRef, Value, ViewRef};
use ptoc_isa::Loc;
use ptoc_opt::tile_layout::{Storage, tile_layout};
use rustc_hash::FxHashMap;

/// Anti-dependences: whether a result overwrites what is still to be read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clash {
    No,
    Yes,
    /// Unless this condition (a register) holds.
    Unless(Reg),
}

/// Where run-time addresses of tiles are kept.
#[derive(Clone, Debug)]
enum Bound {
    /// A single tile: a variable.
    Var(VarId),
    /// A tile array: a table of i64 at this offset of the address space.
    Table(u64),
}

/// The arena's spaces and the tables that find them.
pub(super) struct Memory {
    /// Bytes in the arena for each byte of the address.
    scales: FxHashMap<(Loc, Storage), i64>,
    spaces: FxHashMap<(Loc, Storage), SpaceId>,
    scratch: FxHashMap<TensorId, SpaceId>,
    bound: FxHashMap<Tile, Bound>,
    addresses: Option<SpaceId>,
    /// Buffer for results that overlap their operands; grows as needed.
    pub(super) temp: Option<SpaceId>,
    /// Partials of reductions that end chains; grows as needed.
    partials: Option<SpaceId>,
    /// Places of gathered rows.
    pub(super) places: Option<SpaceId>,
}

impl Lower<'_> {
    /// Lays out the spaces for the tiles and scratch tensors of the kernel.
    pub(super) fn lay_out(&mut self) {
        let mut extents: FxHashMap<(Loc, Storage), u64> = FxHashMap::default();
        let mut order = Vec::new();
        for (tile, data) in self.kernel.tiles.iter().filter(|(t, _)| !self.products.gone.contains(t)) {
            let key = (data.ty.loc, Storage::of(&data.ty));
            let end = match &data.addr {
                AddrKind::Dynamic => self.capacity(data.ty.loc),
                _ => {
                    let last = self.placement.offsets[tile].iter().max().copied().unwrap_or(0);
                    last.saturating_add(data.ty.bytes())
                }
            };
            let extent = extents.entry(key).or_insert_with(|| {
                order.push(key);
                0
            });
            *extent = (*extent).max(end);
        }
        for key @ (loc, storage) in order {
            let scale = match storage {
                Storage::Plain => 1,
                Storage::Mask => 8,
                Storage::Widened => 4,
            };
            self.memory.scales.insert(key, scale);
            let name = match storage {
                Storage::Mask => format!("{loc}.mask"),
                _ => loc.name().to_owned(),
            };
            let size = extents[&key].saturating_mul(scale as u64);
            let space = self.space(&name, size);
            self.memory.spaces.insert(key, space);
        }
        let mut table = 0;
        for (tile, data) in &self.kernel.tiles {
            if data.addr == AddrKind::Dynamic && data.count > 1 {
                self.memory.bound.insert(tile, Bound::Table(table));
                table += 8 * u64::from(data.count);
            }
        }
        if table > 0 {
            self.memory.addresses = Some(self.space("addresses", table));
        }
    }

    /// A space of at least `size` bytes. Offsets are set when all are known.
    pub(super) fn space(&mut self, name: &str, size: u64) -> SpaceId {
        self.spaces.push(SpaceData { name: name.into(), offset: 0, size: size.next_multiple_of(64).max(64) })
    }

    /// A buffer for results that may overlap their operands.
    pub(super) fn temp_space(&mut self, size: u64) -> SpaceId {
        let space = self.grown(self.memory.temp, "temp", size);
        self.memory.temp = Some(space);
        space
    }

    /// Partials of reductions.
    pub(super) fn partial_space(&mut self, size: u64) -> SpaceId {
        let space = self.grown(self.memory.partials, "partials", size);
        self.memory.partials = Some(space);
        space
    }

    fn grown(&mut self, known: Option<SpaceId>, name: &str, size: u64) -> SpaceId {
        let space = known.unwrap_or_else(|| self.space(name, size));
        let data = &mut self.spaces[space];
        data.size = data.size.max(size.next_multiple_of(64));
        space
    }

    /// Scratch tensors live in the arena: each thread runs one block at a time.
    pub(super) fn lay_out_scratch(&mut self) {
        let mut consts: FxHashMap<Value, u64> = FxHashMap::default();
        for stmt in &self.kernel.prologue {
            if let Op::Const { dst, value } = &stmt.op {
                consts.extend(value.as_index().and_then(|n| u64::try_from(n).ok()).map(|n| (*dst, n)));
            }
        }
        for (tensor, data) in &self.kernel.tensors {
            if data.dir != TensorDir::Scratch {
                continue;
            }
            let mut extents = data.shape.iter().map(|v| consts.get(v).copied());
            let size = extents.try_fold(data.dtype.size() as u64, |size, n| size.checked_mul(n?));
            match size {
                Some(size) => {
                    let space = self.space(&format!("gm{}", tensor.index()), size);
                    self.memory.scratch.insert(tensor, space);
                }
                None => {
                    let message = format!("the size of the buffer `{}` in global memory is not a constant", data.name);
                    self.errors.push(Diagnostic::error(codes::SCRATCH_SIZE, data.span, message));
                }
            }
        }
    }

    /// Where a tensor's data is.
    pub(super) fn tensor_base(&self, tensor: TensorId) -> Base {
        match self.memory.scratch.get(&tensor) {
            Some(space) => Base::Space(*space),
            None => Base::Tensor(tensor_slot(self.kernel, tensor)),
        }
    }

    /// Binds a tile to a run-time address.
    pub(super) fn assign(&mut self, tile: Tile, element: Option<Value>, addr: Value) {
        let addr = self.value(addr);
        match self.bound(tile) {
            Bound::Var(var) => self.code.emit(ptoc_ir::loops::Op::Set { var, value: addr }),
            Bound::Table(at) => {
                let slot = self.table_slot(at, element);
                self.code.store(MemTy::I64, slot, addr);
            }
        }
    }

    fn bound(&mut self, tile: Tile) -> Bound {
        if let Some(bound) = self.memory.bound.get(&tile) {
            return bound.clone();
        }
        let bound = Bound::Var(self.code.var(LTy::I64));
        self.memory.bound.insert(tile, bound.clone());
        bound
    }

    fn table_slot(&mut self, at: u64, element: Option<Value>) -> ptoc_ir::loops::Addr {
        let element = match element {
            Some(v) => self.value(v),
            None => self.code.int(0),
        };
        let offset = self.code.times(element, 8);
        let offset = self.code.plus(offset, at as i64);
        let base = match self.memory.addresses {
            Some(space) => Base::Space(space),
            None => unreachable!("a table of addresses is only bound together with its space"),
        };
        ptoc_ir::loops::Addr { base, offset, stride: Stride::Const(0), gather: None }
    }

    /// Byte address of an element of a tile (array) in its memory.
    fn address(&mut self, r: &TileRef) -> Reg {
        let data = &self.kernel.tiles[r.tile];
        if data.addr == AddrKind::Dynamic {
            return match self.bound(r.tile) {
                Bound::Var(var) => self.code.get(var),
                Bound::Table(at) => {
                    let slot = self.table_slot(at, r.element);
                    self.code.load(MemTy::I64, slot)
                }
            };
        }
        let offsets = &self.placement.offsets[r.tile];
        let first = offsets.first().copied().unwrap_or(0) as i64;
        let Some(element) = r.element else { return self.code.int(first) };
        let element = self.value(element);
        if let Some(n) = self.code.known(element) {
            let at = usize::try_from(n).ok().and_then(|n| offsets.get(n)).copied();
            return self.code.int(at.map_or(first, |a| a as i64));
        }
        let step = offsets.get(1).map_or(0, |&b| b as i64 - first);
        let even = offsets.windows(2).all(|w| w[1] as i64 - w[0] as i64 == step);
        if even {
            let skip = self.code.times(element, step);
            return self.code.plus(skip, first);
        }
        let mut address = self.code.int(first);
        for (n, &at) in offsets.iter().enumerate().skip(1) {
            let n = self.code.int(n as i64);
            let here = self.code.cmp(CmpOp::Eq, element, n);
            let at = self.code.int(at as i64);
            address = self.code.select(here, at, address);
        }
        address
    }

    /// Where the element of a tile array begins.
    pub(super) fn tile_start(&mut self, r: &TileRef) -> (Base, Reg) {
        let ty = &self.kernel.tiles[r.tile].ty;
        let key = (ty.loc, Storage::of(ty));
        let address = self.address(r);
        let offset = self.code.times(address, self.memory.scales[&key]);
        (Base::Space(self.memory.spaces[&key]), offset)
    }

    /// The window of a tile as a matrix. The tile has no layout of its own.
    pub(super) fn tile(&mut self, r: &TileRef) -> Matrix {
        let data = &self.kernel.tiles[r.tile];
        let (elem, row, col) = tile_layout(data);
        let (base, mut offset) = self.tile_start(r);
        if let Some((r0, c0)) = r.origin {
            let (r0, c0) = (self.value(r0), self.value(c0));
            let (down, right) = (self.code.times(r0, row), self.code.times(c0, col));
            offset = self.code.add(offset, down);
            offset = self.code.add(offset, right);
        }
        Matrix {
            base,
            offset,
            rows: Stride::Const(row),
            cols: Stride::Const(col),
            ty: elem,
            dtype: data.ty.dtype,
            places: None,
        }
    }

    /// A rank-2 (or rank-1: a row) window of a tensor as a matrix.
    pub(super) fn view(&mut self, v: &ViewRef) -> Matrix {
        let dtype = self.kernel.tensors[v.tensor].dtype;
        let size = dtype.size() as i64;
        let offset = self.value(v.offset);
        let offset = self.code.times(offset, size);
        let mut strides: Vec<Stride> = v.strides.iter().map(|&s| self.byte_stride(s, size)).collect();
        let cols = strides.pop().unwrap_or(Stride::Const(0));
        let rows = strides.pop().unwrap_or(Stride::Const(0));
        Matrix { base: self.tensor_base(v.tensor), offset, rows, cols, ty: MemTy::of(dtype), dtype, places: None }
    }

    /// A stride in elements as one in bytes.
    pub(super) fn byte_stride(&mut self, stride: Value, size: i64) -> Stride {
        let elements = self.value(stride);
        let bytes = self.code.times(elements, size);
        match self.code.known(bytes) {
            Some(n) => Stride::Const(n),
            None => Stride::Reg(bytes),
        }
    }

    /// Whether an instruction that writes `dst` may overwrite elements of `srcs` before it reads them. `at_once` says
    /// whether a source is read at other indices than those that are written, so that the very same elements clash as
    /// well.
    pub(super) fn clash(&mut self, dst: &TileRef, srcs: &[(&TileRef, bool)]) -> Clash {
        let mut apart: Option<Reg> = None;
        for (src, other_indices) in srcs {
            let overlap = self.overlap();
            let meets = overlap.entangled(dst, src) || (*other_indices && overlap.same_storage(dst, src));
            if !meets {
                continue;
            }
            let at_run_time = |t: &TileRef| self.kernel.tiles[t.tile].addr == AddrKind::Dynamic;
            if dst.tile == src.tile || !(at_run_time(dst) || at_run_time(src)) {
                return Clash::Yes;
            }
            let this = self.apart(dst, src);
            apart = Some(apart.map_or(this, |all| self.code.bin(ptoc_ir::loops::BinOp::And, all, this)));
        }
        apart.map_or(Clash::No, Clash::Unless)
    }

    /// Whether two tiles lie apart, now that their addresses are known.
    fn apart(&mut self, a: &TileRef, b: &TileRef) -> Reg {
        let (x, y) = (self.address(a), self.address(b));
        let bytes = |t: &TileRef| self.kernel.tiles[t.tile].ty.bytes() as i64;
        let (x_end, y_end) = (self.code.plus(x, bytes(a)), self.code.plus(y, bytes(b)));
        let (below, above) = (self.code.cmp(CmpOp::Le, x_end, y), self.code.cmp(CmpOp::Le, y_end, x));
        self.code.bin(ptoc_ir::loops::BinOp::Or, below, above)
    }
}

impl Memory {
    pub(super) fn new() -> Memory {
        Memory {
            scales: FxHashMap::default(),
            spaces: FxHashMap::default(),
            scratch: FxHashMap::default(),
            bound: FxHashMap::default(),
            addresses: None,
            temp: None,
            partials: None,
            places: None,
        }
    }
}

/// Index of a tensor argument in the launch's pointer table: scratch tensors have no pointer.
fn tensor_slot(kernel: &Kernel, tensor: TensorId) -> u32 {
    kernel.tensors.iter().filter(|(t, data)| *t < tensor && data.dir != TensorDir::Scratch).count() as u32
}

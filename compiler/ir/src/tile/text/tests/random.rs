//! Random kernels.

use crate::tile::{
    AddrKind, Affine, Builder, CheckData, Const, Coord, Copy, Elem, ElementPlacement, EventData, EventKind, EventRef,
    Guard, Inst, InstAttrs, Kernel, Mma, NestAccess, Op, Operand, PlaceLeaf, PrintPart, Purpose, RoleData, Stored,
    SyncMode, SyncOp, Table, TensorData, TensorDir, TileData, TileRef, Ty, Value, ViewRef,
};
use ptoc_abi::Raster;
use ptoc_diagnostics::{FileId, Span, codes};
use ptoc_isa::{AtomicOp, BinOp, CmpOp, InstrId, Loc, Oob, Order, Pipe, RoundMode, TileType, UnOp};
use ptoc_layout::{Swizzle, TileLayout, parse_value};
use ptoc_tensor::DType;

/// A small generator of random numbers, so that failures can be repeated.
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    fn span(&mut self) -> Span {
        match self.below(4) {
            0 => Span::default(),
            _ => {
                let start = self.below(500) as u32;
                Span::new(FileId(self.below(3) as u32), start, start + self.below(9) as u32)
            }
        }
    }

    fn name(&mut self) -> &'static str {
        const NAMES: [&str; 7] =
            ["x", "Left(..)", "a \"quoted\" \\ name", "line\nbreak\t\u{7f}", "größe 🦀", "", "// no comment"];
        NAMES[self.below(NAMES.len())]
    }
}

/// A random kernel: not valid, but with every construct in every spelling.
struct Generator {
    r: Random,
    b: Builder,
    values: Vec<Value>,
}

impl Generator {
    fn placement(&mut self) -> ElementPlacement {
        let dims = (0..self.r.below(3))
            .map(|_| {
                (0..self.r.below(3))
                    .map(|_| {
                        let coord = [None, Some(*self.r.pick(&Coord::ALL))][self.r.below(2)];
                        let stride = coord.map_or(0, |_| self.r.below(99) as i64);
                        PlaceLeaf { extent: self.r.below(99) as i64, coord, stride }
                    })
                    .collect()
            })
            .collect();
        ElementPlacement { dims, replicated: self.r.below(2) == 0 }
    }

    fn value(&mut self) -> Value {
        *self.r.pick(&self.values)
    }

    fn ty(&mut self) -> Ty {
        match self.r.below(3) {
            0 => Ty::Index,
            _ => Ty::D(*self.r.pick(&DType::ALL)),
        }
    }

    fn new_value(&mut self, ty: Ty) -> Value {
        let name = if self.r.below(3) == 0 { Some(self.r.name().into()) } else { None };
        let span = self.r.span();
        let v = self.b.new_value(ty, name, span);
        self.values.push(v);
        v
    }

    fn tile_ref(&mut self) -> TileRef {
        let tile = cranelift_entity::EntityRef::new(self.r.below(self.b.kernel().tiles.len()));
        let element = if self.r.below(3) == 0 { Some(self.value()) } else { None };
        let origin = if self.r.below(3) == 0 { Some((self.value(), self.value())) } else { None };
        let (rows, cols) = (1 + self.r.below(100) as u32, 1 + self.r.below(4000) as u32);
        TileRef { tile, element, origin, rows, cols, valid: (self.value(), self.value()) }
    }

    fn view(&mut self) -> ViewRef {
        let rank = self.r.below(4);
        ViewRef {
            tensor: cranelift_entity::EntityRef::new(self.r.below(self.b.kernel().tensors.len())),
            offset: self.value(),
            shape: (0..rank).map(|_| self.value()).collect(),
            strides: (0..rank).map(|_| self.value()).collect(),
        }
    }

    fn inst(&mut self) -> Op {
        let instr = *self.r.pick(&InstrId::all().collect::<Vec<_>>());
        let operands = (0..self.r.below(5))
            .map(|_| match self.r.below(3) {
                0 => Operand::Tile(self.tile_ref()),
                1 => Operand::View(self.view()),
                _ => Operand::Scalar(self.value()),
            })
            .collect();
        let scratch = (0..self.r.below(3).saturating_sub(1)).map(|_| self.tile_ref()).collect();
        let attrs = InstAttrs {
            fold: [None, Some(true), Some(false)][self.r.below(3)],
            cmp: [None, Some(*self.r.pick(CmpOp::ALL))][self.r.below(2)],
            round: [None, Some(*self.r.pick(RoundMode::ALL))][self.r.below(2)],
            saturate: [None, Some(true), Some(false)][self.r.below(3)],
            reversed: self.r.below(2) == 0,
            oob: [None, Some(*self.r.pick(Oob::ALL))][self.r.below(2)],
            atomic: [None, Some(AtomicOp::Add), Some(AtomicOp::Max), Some(AtomicOp::Min)][self.r.below(4)],
            stepwise: self.r.below(2) == 0,
            relu: self.r.below(2) == 0,
            factors: [None, Some(*self.r.pick(ptoc_isa::Factors::ALL))][self.r.below(2)],
        };
        Op::Inst(Box::new(Inst { instr, operands, scratch, attrs }))
    }

    fn values(&mut self) -> Vec<Value> {
        (0..self.r.below(4)).map(|_| self.value()).collect()
    }

    fn affine(&mut self) -> Affine {
        Affine { start: self.value(), strides: self.values() }
    }

    fn stored(&mut self) -> Stored {
        let swizzles = [None, Swizzle::new(3, 4, 3).ok(), Swizzle::new(1, 2, -3).ok()];
        Stored { extents: self.values(), at: self.affine(), swizzle: *self.r.pick(&swizzles) }
    }

    fn access(&mut self) -> NestAccess {
        if self.r.below(2) == 0 {
            return NestAccess::Tile { tile: self.tile_ref(), row: self.affine(), col: self.affine() };
        }
        let tensors = self.b.kernel().tensors.len();
        let mut tensor = || cranelift_entity::EntityRef::new(self.r.below(tensors));
        let (data, table) = (tensor(), tensor());
        let tables = (0..self.r.below(3)).map(|_| Table {
            tensor: table,
            at: self.affine(),
            stride: self.value(),
            extent: self.value(),
            oob: *self.r.pick(Oob::ALL),
        });
        let tables = tables.collect();
        let swizzles = [None, Swizzle::new(3, 4, 3).ok(), Swizzle::new(0, 0, 0).ok(), Swizzle::new(1, 2, -3).ok()];
        NestAccess::Tensor {
            tensor: data,
            elem: match self.r.below(4) {
                0 => Elem::U4,
                1 => Elem::I4,
                _ => Elem::Whole(*self.r.pick(&DType::ALL)),
            },
            at: self.affine(),
            swizzle: *self.r.pick(&swizzles),
            tables,
        }
    }

    fn copy(&mut self) -> Op {
        let (extents, dst, src) = (self.values(), self.access(), self.access());
        let guards = (0..self.r.below(3)).map(|_| Guard { at: self.affine(), bound: self.value() }).collect();
        let fill = if self.r.below(2) == 0 { Some(self.value()) } else { None };
        Op::Copy(Box::new(Copy { extents, dst, src, guards, fill, covers: self.r.below(2) == 0 }))
    }

    fn mma(&mut self) -> Op {
        let (m, n, k) = (self.values(), self.values(), self.values());
        Op::Mma(Box::new(Mma { m, n, k, acc: self.access(), a: self.access(), b: self.access() }))
    }

    fn sync(&mut self) -> SyncOp {
        let element = if self.r.below(2) == 0 { Some(self.value()) } else { None };
        let event = EventRef { event: cranelift_entity::EntityRef::new(self.r.below(2)), element };
        let value = self.value();
        match self.r.below(9) {
            0 => SyncOp::Set(event),
            1 => SyncOp::Wait(event),
            2 => SyncOp::Barrier(None),
            3 => SyncOp::Barrier(Some(*self.r.pick(&Pipe::ALL))),
            4 => SyncOp::Arrive(event),
            5 => SyncOp::Expect(event, value),
            6 => SyncOp::ArriveExpect(event, value),
            7 => SyncOp::Complete(event, value),
            _ => SyncOp::WaitPhase(event, value),
        }
    }

    fn layout(&mut self) -> Option<TileLayout> {
        const LAYOUTS: [&str; 4] = [
            "(4,8):(8,1)",
            "((2,2),(2,4)):((1,4),(2,8))",
            "Sw<2,0,-3> o 5 o (4,8):(8,1)",
            "Sw<0,0,0> o 31 o (4,8):(-8,-1)",
        ];
        let text = (self.r.below(2) == 0).then(|| *self.r.pick(&LAYOUTS))?;
        TileLayout::new(&parse_value(text).ok()?).ok()
    }

    fn constant(&mut self, ty: Ty) -> Const {
        let interesting = [0, 1, u64::MAX, 0x7f80_0000, 0xff80_0000, 0x7fc0_0001, 0x7c00, 0xfc00, 0x7e01, 0x8000_0000];
        let bits = if self.r.below(2) == 0 { self.r.next() } else { *self.r.pick(&interesting) };
        Const { ty, bits: bits & crate::scalar::mask(ty) }
    }

    fn stmt(&mut self, depth: usize) {
        let span = self.r.span();
        let tensor = cranelift_entity::EntityRef::new(self.r.below(self.b.kernel().tensors.len()));
        let var = cranelift_entity::EntityRef::new(0);
        let label = self.b.label(span);
        let ty = self.ty();
        let op = match self.r.below(if depth < 4 { 31 } else { 25 }) {
            0 => Op::Const { value: self.constant(ty), dst: self.new_value(ty) },
            1 => Op::Unary { op: *self.r.pick(UnOp::ALL), a: self.value(), dst: self.new_value(ty) },
            2 => Op::Binary { op: *self.r.pick(BinOp::ALL), a: self.value(), b: self.value(), dst: self.new_value(ty) },
            3 => {
                Op::Compare { op: *self.r.pick(CmpOp::ALL), a: self.value(), b: self.value(), dst: self.new_value(ty) }
            }
            4 => Op::Select { cond: self.value(), a: self.value(), b: self.value(), dst: self.new_value(ty) },
            5 => Op::Convert {
                a: self.value(),
                round: *self.r.pick(RoundMode::ALL),
                saturate: self.r.below(2) == 0,
                dst: self.new_value(ty),
            },
            6 => Op::Bitcast { a: self.value(), dst: self.new_value(ty) },
            7 => Op::Get { var, dst: self.new_value(ty) },
            8 => Op::Set { var, value: self.value() },
            9 => Op::Load { tensor, offset: self.value(), dst: self.new_value(ty) },
            10 => Op::Store { tensor, offset: self.value(), value: self.value() },
            11 => Op::Atomic {
                op: *self.r.pick(ptoc_isa::AtomicOp::ALL),
                tensor,
                offset: self.value(),
                expected: if self.r.below(2) == 0 { Some(self.value()) } else { None },
                value: self.value(),
                dst: self.new_value(ty),
            },
            12 => Op::TileGet { tile: self.tile_ref(), row: self.value(), col: self.value(), dst: self.new_value(ty) },
            13 => Op::TileSet { tile: self.tile_ref(), row: self.value(), col: self.value(), value: self.value() },
            14 => Op::Alloc { tile: self.tile_ref().tile },
            15 => {
                let t = self.tile_ref();
                Op::Assign { tile: t.tile, element: t.element, addr: self.value() }
            }
            16 => Op::Check {
                cond: self.value(),
                check: cranelift_entity::EntityRef::new(0),
                args: (0..self.r.below(3)).map(|_| self.value()).collect(),
            },
            17 => {
                let parts = (0..self.r.below(4))
                    .map(|_| match self.r.below(3) {
                        0 => PrintPart::Text(self.r.name().into()),
                        1 => PrintPart::Scalar(self.value()),
                        _ => PrintPart::Tile(self.tile_ref()),
                    })
                    .collect();
                Op::Print { parts }
            }
            18 => [Op::Break(label), Op::Continue(label), Op::Leave(label)][self.r.below(3)].clone(),
            19..=21 => self.inst(),
            22 => self.copy(),
            23 => self.mma(),
            24 => Op::Sync(self.sync()),
            n => return self.structured(n, span, depth),
        };
        self.b.emit(op, span);
    }

    fn region(&mut self, depth: usize) -> Vec<crate::tile::Stmt> {
        self.b.push_region();
        for _ in 0..self.r.below(4) {
            self.stmt(depth + 1);
        }
        self.b.pop_region()
    }

    fn structured(&mut self, which: usize, span: Span, depth: usize) {
        use crate::tile::{For, If, Scope, While};
        let label = self.b.label(self.r.span());
        let op = match which {
            25 | 26 => {
                let (lo, hi) = (self.value(), self.value());
                let index = self.new_value(Ty::Index);
                let stages = 1 + self.r.below(3) as u32;
                Op::For(Box::new(For { label, index, lo, hi, stages, body: self.region(depth) }))
            }
            27 | 28 => {
                let cond = self.value();
                Op::If(Box::new(If { cond, then: self.region(depth), els: self.region(depth) }))
            }
            29 => {
                let head = self.region(depth);
                Op::While(Box::new(While { label, head, cond: self.value(), body: self.region(depth) }))
            }
            _ => {
                let role = (self.r.below(3) == 0).then(|| cranelift_entity::EntityRef::new(self.r.below(2)));
                Op::Scope(Box::new(Scope { label, role, body: self.region(depth) }))
            }
        };
        self.b.emit(op, span);
    }
}

/// A kernel that only its text form has to make sense of.
pub(super) fn random_kernel(seed: u64) -> Kernel {
    let mut r = Random(seed | 1);
    for _ in 0..9 {
        r.next();
    }
    let (name, span) = (r.name(), r.span());
    let b = Builder::new(name, span, "a5");
    let mut g = Generator { r, b, values: Vec::new() };
    for _ in 0..1 + g.r.below(2) {
        let (name, span) = (g.r.name(), g.r.span());
        let v = g.b.dim(name, span);
        g.values.push(v);
        // The value's data may differ from the dimension's.
        if g.r.below(2) == 0 {
            let span = g.r.span();
            g.b.kernel_mut().values[v].span = span;
        }
    }
    for _ in 0..g.r.below(3) {
        let (name, span, ty) = (g.r.name(), g.r.span(), g.ty());
        let v = g.b.scalar_param(name, ty, span);
        g.values.push(v);
        if g.r.below(2) == 0 {
            let default = g.value();
            g.b.set_scalar_default(v, default);
            g.b.kernel_mut().values[v].span = Span::new(FileId(1), 7, 9);
        }
    }
    for _ in 0..1 + g.r.below(3) {
        let data = TensorData {
            name: g.r.name().into(),
            dtype: *g.r.pick(&DType::ALL),
            dir: *g.r.pick(&[TensorDir::In, TensorDir::Out, TensorDir::InOut, TensorDir::Scratch]),
            shape: (0..g.r.below(4)).map(|_| g.value()).collect(),
            optional: g.r.below(2) == 0,
            disjoint: g.r.below(2) == 0,
            stored: [None, Some(g.stored())][g.r.below(2)].clone(),
            place: [None, Some(g.placement())][g.r.below(2)].clone(),
            span: g.r.span(),
        };
        g.b.tensor(data);
    }
    let (name, ty) = (g.r.name(), g.ty());
    g.b.var(name, ty);
    g.b.kernel_mut().sync = *g.r.pick(&[SyncMode::Auto, SyncMode::Manual, SyncMode::Inserted]);
    for _ in 0..2 {
        let data = EventData {
            name: g.r.name().into(),
            kind: [EventKind::Flag, EventKind::Barrier { arrivals: g.r.next() as u32 }][g.r.below(2)],
            from: *g.r.pick(&Pipe::ALL),
            to: *g.r.pick(&Pipe::ALL),
            count: g.r.below(3) as u32,
            purpose: *g.r.pick(&[Purpose::Author, Purpose::RingFull, Purpose::RingEmpty, Purpose::Inserted]),
            span: g.r.span(),
        };
        g.b.kernel_mut().events.push(data);
        let role = RoleData { name: g.r.name().into(), span: g.r.span() };
        g.b.kernel_mut().roles.push(role);
    }
    for _ in 0..1 + g.r.below(4) {
        let layout = g.layout();
        let data = TileData {
            name: g.r.name().into(),
            ty: TileType {
                loc: *g.r.pick(&Loc::ALL),
                dtype: *g.r.pick(&DType::ALL),
                rows: g.r.below(99) as u32,
                cols: g.r.below(99) as u32,
                // Of a tile with a layout the order has no meaning, and is not printed.
                order: if layout.is_some() { Order::Nd } else { *g.r.pick(&[Order::Nd, Order::Dn]) },
                layout,
            },
            count: g.r.below(3) as u32,
            stages: g.r.below(3) as u32,
            addr: match g.r.below(3) {
                0 => AddrKind::Auto,
                1 => AddrKind::Dynamic,
                _ => AddrKind::Fixed((0..g.r.below(3)).map(|_| g.r.next()).collect()),
            },
            hidden: g.r.below(2) == 0,
            span: g.r.span(),
        };
        g.b.tile(data);
    }
    if g.r.below(2) == 0 {
        let any = |g: &mut Generator| {
            let n = g.b.kernel().tiles.len();
            cranelift_entity::EntityRef::new(g.r.below(n))
        };
        let pair = (any(&mut g), any(&mut g));
        g.b.kernel_mut().aliases.push(pair);
    }
    if g.r.below(2) == 0 {
        let tiles = g.b.kernel().tiles.len();
        let tile = cranelift_entity::EntityRef::new(g.r.below(tiles));
        let at = (0..g.r.below(3)).map(|k| 0x40 * k as u64).collect();
        g.b.kernel_mut().pins.push((tile, at));
    }
    let check = CheckData {
        code: codes::TRAP_BLOCK_RACE,
        message: g.r.name().into(),
        span: g.r.span(),
        help: [None, Some(g.r.name().into())][g.r.below(2)].clone(),
    };
    g.b.check_data(check);
    for _ in 0..g.r.below(5) {
        g.stmt(9);
    }
    for _ in 0..g.r.below(3) {
        let (name, span, extent) = (g.r.name(), g.r.span(), g.value());
        let v = g.b.grid_dim(name, extent, span);
        g.values.push(v);
    }
    let on = [None, Some(g.placement())][g.r.below(2)].clone();
    let host = g.r.below(2) == 0;
    let raster = Raster { along: g.r.below(3) as u32, swizzle: 1 << g.r.below(4) };
    g.b.kernel_mut().raster = [None, Some(raster)][g.r.below(2)];
    let rank = g.b.kernel_mut().grid.len();
    g.b.kernel_mut().cluster = [vec![], (0..rank).map(|n| 1 << (n % 3)).collect()][g.r.below(2)].clone();
    (g.b.kernel_mut().on, g.b.kernel_mut().host) = (on, host);
    g.b.begin_body();
    for _ in 0..g.r.below(12) {
        g.stmt(0);
    }
    // A value that nothing defines.
    let ty = g.ty();
    g.new_value(ty);
    g.b.finish()
}

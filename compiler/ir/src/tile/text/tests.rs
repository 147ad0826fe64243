use super::*;
use crate::tile::{
    AddrKind, Builder, CheckData, Const, Inst, InstAttrs, Kernel, Op, Operand, PrintPart, TensorData, TensorDir,
    TileData, TileRef, Ty, Value, ViewRef, verify,
};
use ptoc_diagnostics::{FileId, Span, codes};
use ptoc_isa::{BinOp, CmpOp, InstrId, Loc, Oob, Order, RoundMode, TileType, UnOp, lookup};
use ptoc_tensor::DType;

const HERE: FileId = FileId(3);

fn round_trip(k: &Kernel) {
    let text = print(k, Spans::Keep);
    let back = parse(&text, HERE).unwrap_or_else(|d| panic!("{} at {:?}\n{text}", d.message, d.span));
    assert_eq!(&back, k, "{text}");
    assert_eq!(print(&back, Spans::Keep), text);
    let bare = print(k, Spans::Omit);
    let back = parse(&bare, HERE).unwrap_or_else(|d| panic!("{} at {:?}\n{bare}", d.message, d.span));
    assert_eq!(print(&back, Spans::Omit), bare);
}

/// A small generator of random numbers, so that failures can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
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
            cmp: [None, Some(*self.r.pick(CmpOp::ALL))][self.r.below(2)],
            round: [None, Some(*self.r.pick(RoundMode::ALL))][self.r.below(2)],
            saturate: [None, Some(true), Some(false)][self.r.below(3)],
            reversed: self.r.below(2) == 0,
            oob: [None, Some(*self.r.pick(Oob::ALL))][self.r.below(2)],
            atomic_add: self.r.below(2) == 0,
        };
        Op::Inst(Box::new(Inst { instr, operands, scratch, attrs }))
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
        let op = match self.r.below(if depth < 4 { 28 } else { 22 }) {
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
            22 | 23 => {
                let (lo, hi) = (self.value(), self.value());
                let index = self.new_value(Ty::Index);
                let stages = 1 + self.r.below(3) as u32;
                Op::For(Box::new(For { label, index, lo, hi, stages, body: self.region(depth) }))
            }
            24 | 25 => {
                let cond = self.value();
                Op::If(Box::new(If { cond, then: self.region(depth), els: self.region(depth) }))
            }
            26 => {
                let head = self.region(depth);
                Op::While(Box::new(While { label, head, cond: self.value(), body: self.region(depth) }))
            }
            _ => Op::Scope(Box::new(Scope { label, body: self.region(depth) })),
        };
        self.b.emit(op, span);
    }
}

fn random_kernel(seed: u64) -> Kernel {
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
            span: g.r.span(),
        };
        g.b.tensor(data);
    }
    let (name, ty) = (g.r.name(), g.ty());
    g.b.var(name, ty);
    for _ in 0..1 + g.r.below(4) {
        let data = TileData {
            name: g.r.name().into(),
            ty: TileType {
                loc: *g.r.pick(&Loc::ALL),
                dtype: *g.r.pick(&DType::ALL),
                rows: g.r.below(99) as u32,
                cols: g.r.below(99) as u32,
                order: *g.r.pick(&[Order::Nd, Order::Dn]),
                layout: None,
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
    g.b.begin_body();
    for _ in 0..g.r.below(12) {
        g.stmt(0);
    }
    // A value that nothing defines.
    let ty = g.ty();
    g.new_value(ty);
    g.b.finish()
}

#[test]
fn random_kernels_round_trip() {
    for seed in 0..600 {
        let k = random_kernel(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(seed + 1));
        round_trip(&k);
        // Whatever is wrong with it, the verifier says so and does not panic.
        let _ = verify::verify(&k);
    }
}

/// Damaged text gives a diagnostic inside the text, or parses; it never panics, and neither does the verifier.
#[test]
fn damaged_text_is_refused_politely() {
    let mut r = Random(99);
    for seed in 0..60 {
        let text = print(&random_kernel(0x1234_5678_9abc_def1u64.wrapping_mul(seed + 1)), Spans::Keep);
        for _ in 0..20 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..1 + r.below(3) {
                let at = r.below(bytes.len());
                match r.below(3) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes[at] = *r.pick(b"v0t9 {}[]()\"@.:,x#-\n"),
                    _ => {
                        bytes.remove(at);
                        if bytes.is_empty() {
                            bytes.push(b' ');
                        }
                    }
                }
            }
            let damaged = String::from_utf8_lossy(&bytes).into_owned();
            match parse(&damaged, HERE) {
                Ok(k) => drop(verify::verify(&k)),
                Err(d) => {
                    let span = d.span.expect("a place");
                    assert!(span.file == HERE && span.end as usize <= damaged.len());
                    assert!(d.code.as_str().starts_with("E08"));
                }
            }
        }
    }
}

#[test]
fn places_of_errors() {
    let head = "kernel \"k\" target \"a5\"\n";
    let tail = "prologue {\n}\ngrid []\nbody {\n}\n";
    let body = |s: &str| format!("{head}{}", tail.replace("body {\n", &format!("body {{\n{s}\n")));
    let cases = [
        (format!("{head}tile t1 \"x\""), "t1", "E0801", "expected `t0`, found `t1`"),
        (format!("{head}tile t0 \"x\" Moon<f32, 1, 1>\n{tail}"), "Moon", "E0802", "`Moon` is no location"),
        (format!("{head}tile t0 \"x\" Vec<f33, 1, 1>\n{tail}"), "f33", "E0802", "`f33` is no type"),
        (format!("{head}check c0 XX-1 \"x\"\n{tail}"), "XX-1", "E0802", "`XX-1` is no diagnostic code"),
        (body("tplus t0[1x1 v0, v0]"), "tplus", "E0802", "`tplus` is no statement and no instruction"),
        (body("TADD t0[1x1 v0, v0]"), "TADD", "E0802", "`TADD` is no statement"),
        (body("v0: index = const 1.5"), "1.5", "E0801", "expected a constant of type index"),
        (body("v0: i8 = const 128"), "128", "E0801", "expected a constant of type i8"),
        (body("v0: index = const 1\nset m0, v9"), "v9", "E0804", "there is no value v9"),
        (body("v0: index = const 1\nv0: i8 = const 1"), "v0: i8", "E0806", "v0 is defined twice, and differently"),
        (body("break l99999999999"), "l99999999999", "E0801", "expected a label"),
        (body("print \"open"), "\"open", "E0801", "a string that does not end well"),
        (body("%"), "%", "E0801", "'%' is no part of tile IR"),
        (format!("{head}{tail}more"), "more", "E0801", "expected the end of the text, found `more`"),
    ];
    for (text, place, code, message) in cases {
        let d = parse(&text, HERE).expect_err(&text);
        assert_eq!(d.code.as_str(), code, "{}", d.message);
        assert!(d.message.contains(message), "{} / {message}", d.message);
        let at = d.span.expect("a place").start as usize;
        assert!(text[at..].starts_with(place), "{:?} / {place}", &text[at..]);
    }
}

#[test]
fn depth_and_length() {
    let deep = |n: usize| {
        let open = "scope l0 {\n".repeat(n);
        let close = "}\n".repeat(n);
        format!("kernel \"k\" target \"a5\"\nlabel l0\nprologue {{\n}}\ngrid []\nbody {{\n{open}{close}}}\n")
    };
    assert!(parse(&deep(verify::MAX_DEPTH - 1), HERE).is_ok());
    // As deep as is allowed goes through everything that walks regions, on a test's small stack.
    let conditions: String = "if v0 {\n".repeat(verify::MAX_DEPTH - 1);
    let text = deep(0)
        .replace("prologue {\n", "prologue {\nv0: bool = const true\n")
        .replace("body {\n", &format!("body {{\n{conditions}print \"here\"\n{}", "}\n".repeat(verify::MAX_DEPTH - 1)));
    let k = parse(&text, HERE).expect("allowed");
    assert_eq!(verify::verify(&k), Ok(()));
    assert_eq!(print(&k, Spans::Omit).matches("if v0").count(), verify::MAX_DEPTH - 1);
    let mut lines = Vec::new();
    let mut sink = |line: &str| lines.push(line.to_owned());
    let mut launch = crate::interp::Launch {
        tensors: vec![],
        dims: vec![],
        scalars: vec![],
        options: crate::interp::Options::default(),
        print: &mut sink,
    };
    assert!(crate::interp::run(&k, &mut launch).is_ok());
    assert_eq!(lines, ["here\n"]);
    assert_eq!(parse(&deep(100_000), HERE).unwrap_err().code, codes::IR_TOO_DEEP);
    // Linear: this takes no noticeable time.
    let lines: String = (0..50_000).map(|n| format!("v{n}: index = const {n}\n")).collect();
    let text = format!("kernel \"k\" target \"a5\"\nprologue {{\n{lines}}}\ngrid []\nbody {{\n}}\n");
    assert_eq!(parse(&text, HERE).unwrap().values.len(), 50_000);
}

#[test]
fn a_readable_kernel() {
    let at = |n| Span::new(FileId(0), n, n + 4);
    let mut b = Builder::new("scale", at(0), "a2a3");
    let m = b.dim("M", at(10));
    let s = b.scalar_param("s", Ty::D(DType::F32), at(20));
    let half = b.float_const(DType::F32, 0.5);
    b.set_scalar_default(s, half);
    let mut data = TensorData {
        name: "x".into(),
        dtype: DType::F32,
        dir: TensorDir::In,
        shape: vec![m],
        optional: false,
        disjoint: false,
        span: at(30),
    };
    let x = b.tensor(data.clone());
    (data.name, data.dir) = ("y".into(), TensorDir::Out);
    let y = b.tensor(data);
    let width = b.index_const(64);
    let blocks = b.ceil_div(m, width, at(40));
    let i = b.grid_dim("i", blocks, at(41));
    b.begin_body();
    let start = b.mul(i, width, at(50));
    let rest = b.sub(m, start, at(51));
    let len = b.binary(BinOp::Min, rest, width, at(52));
    b.name_value(len, "i.len");
    let ty = TileType { loc: Loc::Vec, dtype: DType::F32, rows: 1, cols: 64, order: Order::Nd, layout: None };
    let t = b.auto_tile("t", ty, at(60));
    b.emit(Op::Alloc { tile: t }, at(60));
    let one = b.index_const(1);
    let t = b.tile_ref(t, (one, len));
    let view = |tensor| Operand::View(ViewRef { tensor, offset: start, shape: vec![one, len], strides: vec![m, one] });
    for (name, operands) in [
        ("TLOAD", vec![Operand::Tile(t), view(x)]),
        ("TMULS", vec![Operand::Tile(t), Operand::Tile(t), Operand::Scalar(s)]),
        ("TSTORE", vec![view(y), Operand::Tile(t)]),
    ] {
        let instr = lookup(name).expect("an instruction");
        b.inst(Inst { instr, operands, scratch: vec![], attrs: InstAttrs::default() }, at(70));
    }
    let ok = b.compare(CmpOp::Le, start, m, at(80));
    let check = CheckData {
        code: codes::TRAP_TENSOR_OUT_OF_BOUNDS,
        message: "{0} is beyond {1}".into(),
        span: at(81),
        help: None,
    };
    b.check(ok, check, vec![start, m], at(80));
    let k = b.finish();
    assert_eq!(verify::verify(&k), Ok(()));
    round_trip(&k);
    insta::assert_snapshot!(print(&k, Spans::Omit));
    insta::assert_snapshot!("a_readable_kernel_with_spans", print(&k, Spans::Keep));
}

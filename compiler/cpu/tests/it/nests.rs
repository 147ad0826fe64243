//! Loop nests that become functions or routines, and reductions, against the evaluator.

use crate::make::{Build, agree, agree_but, compiled, data, joining, module, strided, tensor};
use proptest::prelude::*;
use ptoc_cpu::Vectors;
use ptoc_diagnostics::FileId;
use ptoc_ir::loops::{Base, BinOp, Gather, LTy, MemTy, Module, Op, Reduce, Reg, UnOp, text, verify};
use ptoc_isa::Oob;

#[test]
fn rows_of_moves_and_conversions() {
    for (from, to) in [("f16", "f32"), ("f32", "f16"), ("i32", "i32"), ("u16", "u16"), ("f32", "f32"), ("i8", "i8")] {
        let size = |ty: &str| match ty {
            "i8" => 1,
            "f16" | "u16" => 2,
            _ => 4,
        };
        let reg = if from.starts_with('f') { "f32" } else { "i32" };
        let round = if to == "f16" { "r13: f32 = round_f16 r12\n" } else { "" };
        let value = if to == "f16" { "r13" } else { "r12" };
        let (f, t) = (size(from), size(to));
        let body = format!(
            "r2: i64 = const 0\nr3: i64 = const {}\nr4: i64 = const {}\nr5: i64 = const 3\n\
             for l0 r6: i64 in r2..r0 step 1 {{\n  r7: i64 = mul r6, r3\n  r8: i64 = mul r6, r4\n  \
             r9: i64 = add r5, r8\n  \
             r10: i64 = add r5, r7\n  lanes r11: i64 in r1 {{\n    r12: {reg} = load {from} t0[r10, stride {f}]\n    \
             {round}    store {to} t1[r9, stride {t}], {value}\n  }}\n}}\n",
            40 * f,
            44 * t
        );
        let module = module(&body, 2);
        let ty = MemTy::ALL.into_iter().find(|ty| ty.name() == from).unwrap();
        for (rows, cols) in [(0, 7), (1, 1), (3, 0), (5, 8), (7, 31), (2, 40)] {
            let mut source = data(ty, 8 * 40 * 4, 3);
            source.rotate_right(3);
            agree(&module, &[rows, cols], &[source, vec![7; 8 * 44 * 4]])
                .unwrap_or_else(|e| panic!("{from} {to}: {e}"));
        }
    }
}

#[test]
fn rows_that_feed_each_other_are_copied_in_order() {
    // Row i + 1 becomes row i: all rows end as row 0.
    let body = "r2: i64 = const 0\nr3: i64 = const 16\nfor l0 r4: i64 in r2..r0 step 1 {\n  r5: i64 = mul r4, r3\n  \
                r6: i64 = add r5, r3\n  lanes r7: i64 in r1 {\n    r8: i32 = load i32 t0[r5, stride 4]\n    \
                store i32 t0[r6, stride 4], r8\n  }\n}\n";
    let module = module(body, 1);
    agree(&module, &[5, 4], &[data(MemTy::I32, 96, 9)]).unwrap();
}

#[test]
fn equal_nests_share_their_code() {
    let one = |n: u32, at: u32, label: u32, base: u32, with: &str| {
        let r = |k: u32| format!("r{}", base + k);
        format!(
            "for l{label} {i}: i64 in r2..r0 step 1 {{\n  {s}: i64 = mul {i}, r3\n  {o}: i64 = add {at_reg}, {s}\n  \
             lanes {l}: i64 in r1 {{\n    {x}: f32 = load f32 t{n}[{s}, stride 4]\n    {c}: f32 = const {with}\n    \
             {y}: f32 = mul {x}, {c}\n    {z}: f32 = sub {y}, {x}\n    store f32 t2[{o}, stride 4], {z}\n  }}\n}}\n",
            i = r(0),
            s = r(1),
            o = r(2),
            l = r(3),
            x = r(4),
            c = r(5),
            y = r(6),
            z = r(7),
            at_reg = format_args!("r{at}"),
        )
    };
    let head = "r2: i64 = const 0\nr3: i64 = const 64\nr4: i64 = const 512\n";
    let single = module(&format!("{head}{}", one(0, 2, 0, 10, "2.5")), 3);
    let twice = module(&format!("{head}{}{}", one(0, 2, 0, 10, "2.5"), one(1, 4, 1, 20, "2.5")), 3);
    let other = module(&format!("{head}{}{}", one(0, 2, 0, 10, "2.5"), one(1, 4, 1, 20, "3.5")), 3);
    let size = |m: &Module| compiled(m, Vectors::Auto).code_size();
    assert!(size(&twice) - size(&single) < 120, "{} and {}", size(&twice), size(&single));
    assert!(size(&other) - size(&single) > 200);
    for cols in [1, 4, 13, 16] {
        let tensors = [data(MemTy::F32, 512, 1), data(MemTy::F32, 512, 2), vec![0; 1024]];
        agree(&other, &[8, cols], &tensors).unwrap();
        agree(&twice, &[7, cols], &tensors).unwrap();
    }
}

#[test]
fn strides_and_steps_in_registers() {
    // Rows are r1 elements apart, columns r1 bytes; the row's own offset is invariant; in place.
    let body = "r2: i64 = const 4\nr3: i64 = mul r1, r2\nr4: f32 = const 0.5\nr5: i64 = const 1\n\
                for l0 r6: i64 in r5..r0 step 1 {\n  r7: i64 = mul r6, r3\n  r8: i64 = mul r6, r3\n  \
                lanes r9: i64 in r1 {\n    \
                r10: f32 = load f32 t0[r7, stride 4]\n    r11: f32 = load f32 t1[r2, stride r3]\n    \
                r12: f32 = fma r10, r4, r11\n    store f32 t0[r8, stride 4], r12\n  }\n}\n";
    let module = module(body, 2);
    for (rows, cols) in [(1, 5), (2, 1), (4, 3), (5, 9)] {
        let tensors = [data(MemTy::F32, 4 * 5 * 9, 5), data(MemTy::F32, 8 + 4 * 9 * 9, 6)];
        agree(&module, &[rows, cols], &tensors).unwrap();
    }
}

#[test]
fn dense_rows_that_feed_each_other_keep_their_order() {
    // Row i + 1 is made of row i; or a part of it, and of the row after it.
    for (shift, ty, reg, size) in
        [(0, "f32", "f32", 4), (1, "f32", "f32", 4), (3, "i64", "i64", 8), (2, "i16", "i32", 2)]
    {
        for (rows, cols) in [(1, 4), (5, 3), (9, 4), (4, 16), (7, 17), (3, 33)] {
            let body = format!(
                "r2: i64 = const 0\nr3: i64 = const {size}\nr13: i64 = mul r1, r3\nr14: i64 = const {}\n\
                 for l0 r4: i64 in r2..r0 step 1 {{\n  r5: i64 = mul r4, r13\n  r6: i64 = add r5, r14\n  \
                 lanes r7: i64 in r1 {{\n    r8: {reg} = load {ty} t0[r5, stride {size}]\n    r9: {reg} = neg r8\n    \
                 r15: {ty2} = load {mem2} t1[r2]\n    r16: {reg} = load {ty} t1[r5, stride {size}]\n    \
                 r10: {reg} = sub r9, r16\n    r17: {reg} = add r10, r15\n    \
                 store {ty} t0[r6, stride {size}], r17\n    \
                 store {ty} t2[r5, stride {size}], r9\n  }}\n}}\n",
                (cols + shift) * size,
                ty2 = reg,
                mem2 = ty,
            );
            let module = module(&body, 3);
            let bytes = ((rows + 1) * cols * size + 64) as usize;
            let source = |seed| (0..bytes).map(|n| (n as u32 * 37 + seed) as u8 & 0x3f).collect::<Vec<u8>>();
            agree(&module, &[rows, cols], &[source(1), source(2), vec![0; bytes]])
                .unwrap_or_else(|e| panic!("{ty} {shift} {rows}x{cols}: {e}"));
        }
    }
}

#[test]
fn partials_of_rows_are_those_of_steps() {
    let load = "r12: f32 = load f32 t0[r7, stride 4]\n";
    let chosen = "r12: f32 = load f32 t0[r7, stride 4]\nr13: f32 = const 0.5\nr14: bool = lt r12, r13\n\
                  r15: f32 = mul r12, r12\nr16: f32 = select r14, r12, r15\nstore f32 t1[r7, stride 4], r16\n";
    let halves =
        "r12: f32 = load f16 t0[r7, stride 2]\nr16: f32 = fma r12, r12, r12\nstore i64 t1[r7, stride 8], r11\n";
    let lanes = "r12: f32 = load f32 t0[r7, stride 4]\nr13: i32 = wrap r11\nr14: f32 = i_to_f r13\n\
                 r16: f32 = add r14, r12\n";
    let words = "r12: i32 = load i32 t0[r7, stride 4]\nr16: i32 = load i16 t0[r9, stride 2]\n";
    let cases = [
        (load, "join add f32 t2[r8], r12\n"),
        (load, "join max f32 t2[r8], r12\n"),
        (chosen, "join add f32 t2[r8], r16\n"),
        (chosen, "join min f32 t2[r8], r12\njoin add f32 t2[r9], r16\n"),
        (halves, "join add f32 t2[r8], r16\n"),
        (lanes, "join max f32 t2[r8], r16\n"),
        (words, "join add i32 t2[r8], r12\njoin max_u i32 t2[r9], r16\n"),
    ];
    for (body, joins) in cases {
        for count in [0, 1, 15, 16, 17, 63, 64, 65, 79, 80, 95, 128, 131, 200] {
            for known in [None, Some(count)] {
                let module = joining(joins, body, known);
                let ty = if body == words { MemTy::I32 } else { MemTy::F32 };
                let tensors = [data(MemTy::F32, 4096, 7), vec![3; 8192], data(ty, 4096, 8)];
                agree(&module, &[3, count], &tensors)
                    .unwrap_or_else(|e| panic!("{joins} {count} {known:?}: {e}\n{body}"));
            }
        }
    }
}

#[test]
fn nests_take_the_full_width() {
    let module = random_nest(&[1, 2, 3, 4], None, None, 0);
    for (vectors, wide) in [(Vectors::Bits128, 0), (Vectors::Bits256, 1), (Vectors::Bits512, 1)] {
        if ptoc_cpu::available(vectors) {
            assert_eq!(compiled(&module, vectors).nests(), (wide, 1), "{vectors:?}");
        }
    }
}

/// A nest of random arithmetic over two inputs, one of them broadcast, with counts that may be known.
fn random_nest(ops: &[u8], rows: Option<i64>, cols: Option<i64>, broadcast: u8) -> Module {
    let mut f = Build::new(2);
    let (zero, step, out_step) = (f.i64(0), f.i64(132), f.i64(100));
    let rows = rows.map_or(f.params[0], |n| f.i64(n));
    let cols = cols.map_or(f.params[1], |n| f.i64(n));
    let outside = f.constant(LTy::F32, u64::from(0.75f32.to_bits()));
    let label = f.labels.push(());
    let index = f.reg(LTy::I64);
    f.open.push(vec![]);
    let at = f.binary(BinOp::Mul, index, step);
    let out = f.binary(BinOp::Mul, index, out_step);
    let lane = f.reg(LTy::I64);
    f.open.push(vec![]);
    let x = f.load(MemTy::F32, strided(tensor(0, at), 4));
    let y = match broadcast % 3 {
        0 => f.load(MemTy::F32, strided(tensor(1, at), 4)),
        1 => f.load(MemTy::F32, tensor(1, at)),
        _ => f.load(MemTy::F32, strided(tensor(1, zero), 4)),
    };
    let mut values: Vec<Reg> = vec![outside, x, y];
    for op in ops {
        let pick = |n: u8| values[usize::from(n) % values.len()];
        let (a, b) = (pick(op >> 2), pick(op >> 5));
        let value = match op % 5 {
            0 => f.binary(BinOp::Max, a, b),
            1 => f.binary(BinOp::Mul, a, b),
            2 => f.binary(BinOp::Min, a, b),
            3 => f.def(LTy::F32, |dst| Op::Unary { dst, op: UnOp::Rint, a }),
            _ => f.def(LTy::F32, |dst| Op::Unary { dst, op: UnOp::Abs, a }),
        };
        values.push(value);
    }
    let last = crate::scalars::canonical(&mut f, *values.last().unwrap());
    f.store(MemTy::F32, strided(tensor(2, out), 4), last);
    let body = f.open.pop().unwrap();
    f.push(Op::Lanes(Box::new(ptoc_ir::loops::Lanes { lane, count: cols, body })));
    let body = f.open.pop().unwrap();
    f.push(Op::For(Box::new(ptoc_ir::loops::For { label, index, lo: zero, hi: rows, step: 1, body })));
    f.module(3)
}

const REDUCTIONS: [BinOp; 5] = [BinOp::Add, BinOp::Max, BinOp::Min, BinOp::MaxU, BinOp::MinU];

fn reduction(op: BinOp, ty: MemTy, gap: i64) -> Module {
    let mut f = Build::new(2);
    let zero = f.i64(0);
    let size = i64::from(ty.size());
    let a_strides = (size * 300 * gap, size * gap);
    let [d, a] = [1, 0].map(|n| ptoc_ir::loops::Addr { base: Base::Tensor(n), ..tensor(0, zero) });
    let (rows, cols) = (f.params[0], f.params[1]);
    let reduce = Reduce { op, ty, rows, cols, d, d_stride: 3 * size, a, a_strides };
    f.push(Op::Reduce(Box::new(reduce)));
    f.module(2)
}

#[test]
fn reductions_of_every_type() {
    for ty in MemTy::ALL {
        for op in REDUCTIONS.into_iter().filter(|op| Reduce::exists(*op, ty)) {
            for gap in [1, 2] {
                let module = reduction(op, ty, gap);
                let bytes = 3 * 300 * gap as usize * ty.size() as usize;
                for (rows, cols) in [(0, 5), (1, 0), (3, 1), (2, 63), (2, 64), (1, 65), (3, 200), (1, 300)] {
                    let tensors = [data(ty, bytes, cols as u32 + 1), vec![9; 9 * ty.size() as usize]];
                    agree(&module, &[rows, cols], &tensors)
                        .unwrap_or_else(|e| panic!("{} {} {gap} {rows}x{cols}: {e}", op.name(), ty.name()));
                }
            }
        }
    }
}

/// A gather from tensor 0 by tensor 1 into tensor 2; what is missing goes to tensor 3.
fn gather(oob: Oob, unsigned: bool, ty: MemTy, gap: i64) -> Module {
    let mut f = Build::new(3);
    let zero = f.i64(0);
    let size = i64::from(ty.size());
    let [table, index, d, missing] = [0, 1, 2, 3].map(|n| tensor(n, zero));
    let (rows, cols, total) = (f.params[0], f.params[1], f.params[2]);
    let dst = f.def(LTy::I64, |dst| {
        let (d_strides, index_strides) = ((200 * size * gap, size * gap), (200 * 4, 4));
        Op::Gather(Box::new(Gather {
            dst,
            oob,
            ty,
            rows,
            cols,
            d,
            d_strides,
            table,
            total,
            index,
            unsigned,
            index_strides,
            plus: None,
            places: None,
        }))
    });
    f.store(MemTy::I64, missing, dst);
    f.module(4)
}

/// Gathers from tensor 0 by the sums of a column and a row of tensor 1, whose rows may stay where they are; and a nest
/// that adds them up, weighed by tensor 2. Rows that do not stay go to tensor 3, sums to tensor 4, what is missing to
/// tensor 5.
fn located(oob: Oob, unsigned: bool, ty: &str, number: usize) -> Module {
    let (bits, size) = match ty {
        "u8" | "i8" => ("u8", 1),
        "u16" | "f16" | "bf16" => ("u16", 2),
        "i64" => ("i64", 8),
        _ => ("i32", 4),
    };
    let reg = if ty.starts_with(['f', 'b']) {
        "f32"
    } else if size == 8 {
        "i64"
    } else {
        "i32"
    };
    let (oob, sign) = (oob.name(), if unsigned { "unsigned " } else { "" });
    let mut body = "r3: i64 = const 0\nr4: i64 = const 64\n".to_owned();
    for n in 0..number {
        let (r, at) = (100 + 10 * n, n * 4 * 70 * size);
        let step = 8 * number;
        body += &format!(
            "r{r}: i64 = const {at}\nr{0}: i64 = const {1}\nr{2}: i64 = const {3}\n\
             r{4}: i64 = gather {oob} {bits} (r0, r1), d t3[r{r}] ({5}, {size}), from t0[r3] r2, by {sign}t1[r{2}] (4, \
             0), plus t1[r4] (0, 4), places s0[r{0}] {step}\nstore i64 t5[r{0}], r{4}\n",
            r + 1,
            8 * n,
            r + 2,
            16 * n,
            r + 3,
            70 * size,
        );
    }
    let step = 8 * number;
    body +=
        &format!("r10: i64 = const {step}\nr11: i64 = const 280\nr12: i64 = const {}\nr13: i64 = const 4\n", 70 * size);
    body += "for l0 r14: i64 in r3..r0 step 1 {\n r15: i64 = mul r14, r10\n r16: i64 = mul r14, r13\n \
        r17: i64 = mul r14, r12\n";
    body += "lanes r18: i64 in r1 {\n";
    for n in 0..number {
        let r = 200 + 10 * n;
        body += &format!(
            "r{r}: i64 = load i64 s0[r15, gather r{0}]\nr{1}: {reg} = load {ty} t0[r3, stride {size}, gather r{r}]\n",
            101 + 10 * n,
            r + 1,
        );
        if reg == "f32" {
            body += &format!("r{0}: f32 = load f32 t2[r16]\nr{1}: f32 = mul r{0}, r{2}\n", r + 2, r + 3, r + 1);
        } else {
            body += &format!("r{0}: {reg} = add r{1}, r{1}\n", r + 3, r + 1);
        }
        let sum = if n == 0 { r + 3 } else { r + 4 };
        if n > 0 {
            let before = if n == 1 { r - 7 } else { r - 6 };
            body += &format!("r{sum}: {reg} = add r{before}, r{}\n", r + 3);
        }
        if n + 1 == number {
            body += &format!("store {ty} t4[r17, stride {size}], r{sum}\n");
        }
    }
    body += "}\n}\n";
    let names: String = (0..6).map(|n| format!("tensor \"T{n}\"\n")).collect();
    let source = format!(
        "kernel \"nest\"\n{names}arena 256\nspace \"places\" at 0 size 256\n\
         launch \"l\" (r0: i64, r1: i64, r2: i64) {{\n}}\n\
         block \"b\" (r0: i64, r1: i64, r2: i64) {{\n  labels 8\n{body}}}\n"
    );
    let module = text::parse(&source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
    verify(&module).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
    module
}

#[test]
fn rows_that_stay_in_their_table() {
    for ty in ["f32", "f16", "bf16", "i32", "u8", "i8", "u16", "i64"] {
        for (number, oob, unsigned) in [
            (1, Oob::Undefined, false),
            (2, Oob::Clamp, true),
            (3, Oob::Wrap, false),
            (4, Oob::Zero, false),
            (4, Oob::Undefined, true),
        ] {
            let module = located(oob, unsigned, ty, number);
            for (rows, cols, total, jump) in [
                (4, 70, 400, 99),
                (4, 64, 400, 99),
                (3, 16, 120, 9),
                (1, 1, 50, 99),
                (2, 5, 0, 99),
                (0, 5, 50, 99),
                (4, 17, 90, 99),
            ] {
                // Starts of rows of which some reach beyond the table, then a row that ascends but for one number.
                let starts = (0..16i32).map(|n| n * 37 % 97 - i32::from(n == 5) * 90 + i32::from(n == 11) * 1000);
                let along = (0..70).map(|n| n + i32::from(n == jump));
                let index: Vec<u8> = starts.chain(along).flat_map(i32::to_le_bytes).collect();
                let mem = MemTy::ALL.into_iter().find(|t| t.name() == ty).unwrap();
                let size = mem.size() as usize;
                let tensors = [
                    data(mem, 400 * size, 5),
                    index,
                    data(MemTy::F32, 16, 7),
                    vec![0; number * 4 * 70 * size],
                    vec![9; 4 * 70 * size],
                    vec![9; 8 * number],
                ];
                agree_but(&module, &[rows, cols, total], &tensors, 3)
                    .unwrap_or_else(|e| panic!("{} {ty} {number} {rows}x{cols} of {total}: {e}", oob.name()));
            }
        }
    }
}

#[test]
fn gathers_of_every_size_and_mode() {
    for ty in [MemTy::U8, MemTy::U16, MemTy::I32, MemTy::I64] {
        for oob in Oob::ALL {
            for (rows, cols, total) in [(0, 5, 9), (3, 1, 4), (2, 70, 500), (1, 200, 300), (2, 64, 64), (1, 3, 0)] {
                for (gap, unsigned, start, jump) in
                    [(1, false, 0, 71), (2, true, 3, 73), (1, true, -2, 64), (1, false, 290, 9)]
                {
                    // Neighbours, but for every `jump`-th index, which is one too many.
                    let index = |n: i32| start + n % 200 + i32::from(n % jump == jump - 1);
                    let index: Vec<u8> = (0..600).flat_map(|n| index(n).to_le_bytes()).collect();
                    let room = 3 * 200 * gap as usize * ty.size() as usize;
                    let tensors = [data(ty, 500 * ty.size() as usize, 5), index, vec![9; room], vec![9; 8]];
                    agree(&gather(*oob, unsigned, ty, gap), &[rows, cols, total], &tensors)
                        .unwrap_or_else(|e| panic!("{} {} {rows}x{cols} of {total}: {e}", oob.name(), ty.name()));
                }
            }
        }
    }
}

#[test]
fn largest_and_smallest_know_zeros_and_nan() {
    for (op, values, want) in [
        (BinOp::Max, [-0.0f32, 0.0], 0.0f32),
        (BinOp::Min, [0.0, -0.0], -0.0),
        (BinOp::Max, [1.0, -f32::NAN], f32::NAN),
        (BinOp::Min, [1.0, f32::NAN], f32::NAN),
        (BinOp::Max, [f32::NEG_INFINITY, -3e38], -3e38),
        (BinOp::Min, [f32::INFINITY, 3e38], 3e38),
    ] {
        let module = reduction(op, MemTy::F32, 1);
        for order in [[0, 1], [1, 0]] {
            let row: Vec<u8> = order.iter().flat_map(|n| values[*n].to_le_bytes()).collect();
            let mut tensors = vec![vec![0; 1200], vec![0; 4]];
            tensors[0][..8].copy_from_slice(&row);
            agree(&module, &[1, 2], &tensors).unwrap();
            let kernel = compiled(&module, Vectors::Auto);
            let args: Vec<_> = tensors.iter_mut().map(|t| ptoc_exec::TensorArg::new(t)).collect();
            let launch = ptoc_exec::LaunchArgs { params: &[1, 2], tensors: &args, threads: 1, print: None };
            unsafe { kernel.launch(launch) }.unwrap();
            assert_eq!(tensors[1], want.to_le_bytes(), "{} {values:?}", op.name());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ptoc_tests_budget::cases(16, 48), ..ProptestConfig::default() })]

    #[test]
    fn random_nests(
        ops in proptest::collection::vec(any::<u8>(), 1..9),
        shape in (0..7i64, 0..26i64),
        known in (any::<bool>(), any::<bool>()),
        broadcast in any::<u8>(),
        seed in any::<u32>(),
    ) {
        let module = random_nest(&ops, known.0.then_some(shape.0), known.1.then_some(shape.1), broadcast);
        let tensors = [data(MemTy::F32, 1024, seed), data(MemTy::F32, 1024, seed ^ 7), vec![3; 1024]];
        if let Err(why) = agree(&module, &[shape.0, shape.1], &tensors) {
            prop_assert!(false, "{why}\n{}", text::print(&module, false));
        }
    }
}

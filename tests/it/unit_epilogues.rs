//! Epilogues of products on the tensor cores: what is done to the elements of an accumulator on their way to memory has
//! the reference interpreter's bits, with tails on every side, in subtiles and whole, with arrays in other layouts.

use crate::engine::{Content, noise};
use crate::ptx::{Ptx, build_unit};
use ptoc_isa::Target;
use ptoc_opt::matrix_unit::find;
use ptoc_ptx::{Op, Sm90};
use ptoc_tensor::{DType, Tensor};

/// A product with something behind it. Its arguments are `a`, `b`, and these.
struct Case<'a> {
    name: &'static str,
    factors: DType,
    sums: &'static str,
    tile: [u32; 2],
    /// Declarations of further arguments, and the text in front of the kernel.
    arguments: &'static str,
    uses: &'static str,
    /// Behind the product.
    body: &'static str,
    /// In its place, the product.
    product: Option<&'a str>,
}

const CASE: Case<'static> = Case {
    name: "",
    factors: DType::F16,
    sums: "f32",
    tile: [64, 32],
    arguments: "c: out f32[M, N]",
    uses: "",
    body: "",
    product: None,
};

impl Case<'_> {
    fn text(&self) -> String {
        let Case { factors, sums, tile: [bm, bn], arguments, uses, body, .. } = self;
        let product = self.product.unwrap_or(
            "acc = 0.0;
             pipeline(stages = 2) for k in tiles(K, 64) {
                 TMATMUL_ACC(acc, acc, Left(a.tile(m, k)), Right(b.tile(k, n)));
             }",
        );
        format!(
            "{uses}
             kernel product(a: in {factors}[M, K], b: in {factors}[K, N], {arguments}) where K >= 1 {{
                 grid (m in tiles(M, {bm}), n in tiles(N, {bn}));
                 let acc = tile Acc<{sums}, m, n>;
                 {product}
                 {body}
             }}"
        )
    }

    /// The arrays of a launch: those of the kernel's arguments, by their declarations.
    fn tensors(&self, [m, n, k]: [usize; 3], seed: u64) -> Vec<Tensor> {
        let extent = |name: &str| match name {
            "M" => m,
            "N" => n,
            "K" => k,
            number => number.parse().expect("a number"),
        };
        let all = format!("a: in {f}[M, K], b: in {f}[K, N], {}", self.arguments, f = self.factors);
        let mut out = Vec::new();
        for (at, part) in all.split(']').enumerate() {
            let Some((head, shape)) = part.split_once('[') else { continue };
            let words: Vec<&str> = head.split_whitespace().collect();
            let dtype = DType::from_name(words[words.len() - 1]).expect("a dtype");
            let shape: Vec<usize> = shape.split(", ").map(extent).collect();
            out.push(noise(dtype, &shape, Content::Tame, seed + at as u64));
        }
        out
    }

    fn built(&self) -> (crate::engine::Middle, Ptx) {
        build_unit(&self.text(), &[]).unwrap_or_else(|e| panic!("{}: {e}\n{}", self.name, self.text()))
    }

    fn check(&self, sizes: &[[usize; 3]]) {
        let text = self.text();
        let (middle, ptx) = self.built();
        let multiplies = ptx.code.kernel.insts().any(|inst| matches!(inst.op, Op::Sm90(Sm90::Wgmma(_))));
        let why = find(&middle.prepared.placed.kernel, Target::builtin("sm90").expect("a target")).err();
        assert!(multiplies, "{}: it is not on the tensor cores: {why:?}\n{text}", self.name);
        for (at, size) in sizes.iter().enumerate() {
            let [m, n, k] = *size;
            let dims = [("M", m as i64), ("N", n as i64), ("K", k as i64)];
            let tensors = self.tensors(*size, 3 * at as u64 + 1);
            let want = middle.interpret_on_unit(&dims, &tensors).unwrap_or_else(|e| panic!("{}: {e:?}", self.name));
            let name = format!("epilogue_{}_{m}_{n}_{k}", self.name);
            let gives = ptx.gives(&dims, &tensors, &want, (&name, at as u64));
            gives.unwrap_or_else(|why| panic!("{} {size:?}: {why}\n{text}", self.name));
        }
    }
}

/// Whole blocks, and tails of even and of odd lengths.
const SIZES: [[usize; 3]; 3] = [[128, 64, 64], [72, 40, 40], [67, 33, 97]];

const NODES: &str = "use std::act::gelu; use std::act::gelu_erf; use std::act::relu; use std::act::silu;
use std::epilogue::activated; use std::epilogue::biased; use std::epilogue::biased_rows; use std::epilogue::joined;
use std::epilogue::linear; use std::epilogue::saved; use std::epilogue::store;";

/// Instructions on whole accumulators.
#[test]
fn whole_blocks() {
    let cases = [
        Case { name: "scaled", body: "TSTORE(c.tile(m, n), 2.0 * Vec(acc));", ..CASE },
        Case {
            name: "relu",
            arguments: "c: out f16[M, N]",
            body: "TSTORE(c.tile(m, n), f16(max(Vec(acc), 0.0)));",
            ..CASE
        },
        Case {
            name: "bias_gelu",
            factors: DType::BF16,
            tile: [64, 64],
            arguments: "bias: in f32[N], c: out bf16[M, N]",
            uses: NODES,
            body: "let x = Vec(acc); x += Vec(bias.tile(n)); TSTORE(c.tile(m, n), bf16(gelu(x)));",
            ..CASE
        },
        Case {
            name: "tanh_residual",
            arguments: "r: in f16[M, N], c: out f32[M, N]",
            body: "TSTORE(c.tile(m, n), tanh(Vec(acc)) + f32(Vec(r.tile(m, n))));",
            ..CASE
        },
        // Rounded in between, chosen by a comparison, of a residual that lies the other way round.
        Case {
            name: "turned",
            arguments: "r: in f32[N, M], c: out f32[M, N]",
            body: "let y = Vec(acc); let z = f32(f16(y)) * Vec(r.T.tile(m, n));
                   TSTORE(c.tile(m, n), if y > z { y } else { -z });",
            ..CASE
        },
        Case {
            name: "integers",
            arguments: "c: out i32[M, N], d: out u8[M, N], e: out i16[M, N]",
            body: "let x = i32(Vec(acc) * 100.0); TSTORE(c.tile(m, n), x);
                   TSTORE(d.tile(m, n), u8(Vec(acc) * 16.0)); TSTORE(e.tile(m, n), i16(x));",
            ..CASE
        },
        Case {
            name: "f8",
            arguments: "r: in f8e4m3[M, N], c: out f8e5m2[M, N]",
            body: "TSTORE(c.tile(m, n), f8e5m2(Vec(acc) + f32(Vec(r.tile(m, n)))));",
            ..CASE
        },
    ];
    cases.iter().for_each(|c| c.check(&SIZES));
}

/// A start at a bias, with an activation behind it.
#[test]
fn biases_are_where_sums_start() {
    let product = "for k in tiles(K, 64) {
        let x = Left(a.tile(m, k));
        let y = Right(b.tile(k, n));
        if k.first { TMATMUL_BIAS(acc, x, y, Bias(bias.tile(n))); } else { TMATMUL_ACC(acc, acc, x, y); }
    }";
    let start = Case {
        name: "start",
        arguments: "bias: in f32[N], c: out f32[M, N]",
        uses: NODES,
        product: Some(product),
        body: "TSTORE(c.tile(m, n), acc);",
        ..CASE
    };
    start.check(&SIZES);
    Case { name: "start_few", tile: [16, 64], ..start }.check(&SIZES);
    let once = format!("let row = Bias(bias.tile(n)); {}", product.replace("Bias(bias.tile(n))", "row"));
    Case { name: "start_once", product: Some(&once), ..start }.check(&SIZES);
    Case { name: "start_silu", body: "TSTORE(c.tile(m, n), silu(Vec(acc)));", ..start }.check(&SIZES);
}

/// Nodes of `std::epilogue`, subtile by subtile.
#[test]
fn subtiles() {
    let store = |name, arguments, body| Case { name, tile: [64, 64], arguments, uses: NODES, body, ..CASE };
    let cases = [
        store(
            "nodes",
            "bias: in f32[N], c: out f32[M, N]",
            "store<EM = 32, EN = 32>(c.tile(m, n), acc, activated(silu, biased(bias.tile(n), linear(0.5))));",
        ),
        store(
            "rows",
            "rows: in f32[M], aux: out f16[M, N], c: out f16[M, N]",
            "store<EM = 16, EN = 16, STAGES = 1>(c.tile(m, n), acc,
                 activated(relu, saved(aux.tile(m, n), biased_rows(rows.tile(m), linear()))));",
        ),
        store(
            "gate",
            "rows: in f32[M], aux: in f16[M, N], c: out bf16[M, N]",
            "store<EM = 64>(c.tile(m, n), acc,
                 joined(aux.tile(m, n), |x, y| x * y, biased_rows(rows.tile(m), linear())));",
        ),
        store(
            "slices",
            "r: in f32[M, N], c: out f32[M, N]",
            "for e in tiles(m.len, 32) {
                 TSTORE(c.tile(m, n).tile(e, _), gelu_erf(Vec(acc.tile(e, _))) + Vec(r.tile(m, n).tile(e, _)));
             }",
        ),
    ];
    cases.iter().for_each(|c| c.check(&SIZES));
    let few = store(
        "few",
        "bias: in f32[N], r: in bf16[M, N], c: out bf16[M, N]",
        "store<EM = 16, EN = 32>(c.tile(m, n), acc,
             activated(gelu, biased(bias.tile(n), linear(1.0, 0.5, r.tile(m, n)))));",
    );
    Case { tile: [32, 64], ..few }.check(&SIZES);
    let large = Case {
        factors: DType::BF16,
        tile: [128, 256],
        ..store(
            "large",
            "bias: in f32[N], r: in bf16[M, N], c: out bf16[M, N]",
            "store<EM = 32, EN = 32>(c.tile(m, n), acc,
             activated(gelu, biased(bias.tile(n), linear(1.0, 0.5, r.tile(m, n)))));",
        )
    };
    large.check(&[[128, 256, 64], [136, 264, 72]]);
}

/// Sums of i32 with scales of rows and columns, and products of 8-bit floats with one scale.
#[test]
fn scales_of_bytes() {
    let product = |zero: &str| {
        format!(
            "acc = {zero};
             for k in tiles(K, 64) {{ TMATMUL_ACC(acc, acc, Left(a.tile(m, k)), Right(b.tile(k, n))); }}"
        )
    };
    let integers = Case {
        name: "int8",
        factors: DType::I8,
        sums: "i32",
        arguments: "rows: in f32[M], cols: in f32[N], c: out f32[M, N]",
        product: Some(&product("0")),
        body: "let x = f32(Vec(acc)); TSTORE(c.tile(m, n), x * Vec(col(rows).tile(m, _)) * Vec(cols.tile(n)));",
        ..CASE
    };
    integers.check(&SIZES);
    let floats = Case {
        name: "f8",
        factors: DType::F8E4M3,
        arguments: "r: in f32[M, N], c: out f16[M, N]",
        product: Some(&product("0.0")),
        body: "TSTORE(c.tile(m, n), f16(Vec(acc) * 0.25 + Vec(r.tile(m, n))));",
        ..CASE
    };
    floats.check(&SIZES);
}

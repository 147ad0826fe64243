//! Products on the tensor cores: kernels that are taken by them have the bits of the reference interpreter in PTX's, at
//! sizes with tails on every side, with arrays that bulk copies take and with those that they do not; what is refused
//! says why, and has the sums of chains in both.

use crate::deletions;
use crate::engine::{Content, noise};
use crate::ptx::{Ptx, build_unit};
use ptoc_isa::Target;
use ptoc_opt::matrix_unit::find;
use ptoc_ptx::{MmaType, Op, Sm90};
use ptoc_tensor::matrix_unit::{FactorType, SumProfile};
use ptoc_tensor::{DType, Tensor};
use ptoc_tests_budget::cases;

/// A product, as one writes it.
#[derive(Clone, Debug)]
struct Product {
    factors: DType,
    /// Of the right operand, where they are others.
    right: Option<DType>,
    result: DType,
    tile: [u32; 3],
    /// A is [K, M], B is [N, K].
    turned: [bool; 2],
    stages: u32,
    /// So many factors, as a constant: begins with a product that starts at zero, in place of a tile of zeros.
    depth: Option<usize>,
    /// Blocks go down columns, in bands.
    raster: bool,
}

impl Product {
    fn new(tile: [u32; 3]) -> Product {
        let (factors, result) = (DType::F16, DType::F32);
        Product { factors, right: None, result, tile, turned: [false; 2], stages: 2, depth: None, raster: false }
    }

    /// Bytes where `Product::new` has halves.
    fn bytes(factors: [DType; 2], tile: [u32; 3]) -> Product {
        let result = if factors[0] == DType::I8 { DType::I32 } else { DType::F32 };
        Product { factors: factors[0], right: Some(factors[1]), result, ..Product::new(tile) }
    }

    fn text(&self) -> String {
        let ([bm, bn, bk], [a, b]) = (self.tile, self.turned);
        let (factors, result) = (self.factors, self.result);
        let others = self.right.unwrap_or(factors);
        let (sums, nothing) = if factors == DType::I8 { ("i32", "0") } else { ("f32", "0.0") };
        // A transposed window is loaded to Mat; on the shortest way to Left it would be transposed in Vec.
        let (left, of_a) = if a { ("K, M", "Mat(a.T.tile(m, k))") } else { ("M, K", "a.tile(m, k)") };
        let (right, of_b) = if b { ("N, K", "b.T") } else { ("K, N", "b") };
        let raster = if self.raster { " raster(along = m, swizzle = 2)" } else { "" };
        let pipeline = if self.stages > 1 { format!("pipeline(stages = {}) ", self.stages) } else { String::new() };
        let mode = if factors == DType::F32 { ", TF32, Rint" } else { "" };
        let operands = format!("Left({of_a}), Right({of_b}.tile(k, n)){mode}");
        let (zero, product) = match self.depth {
            None => (format!("acc = {nothing};"), format!("TMATMUL_ACC(acc, acc, {operands});")),
            Some(_) => (
                String::new(),
                format!(
                    "let x = Left({of_a}); let y = Right({of_b}.tile(k, n));
                     if k.first {{ TMATMUL(acc, x, y{mode}); }} else {{ TMATMUL_ACC(acc, acc, x, y{mode}); }}"
                ),
            ),
        };
        let text = format!(
            "kernel product(a: in {factors}[{left}], b: in {others}[{right}], c: out {result}[M, N]) {{
                 grid (m in tiles(M, {bm}), n in tiles(N, {bn})){raster};
                 let acc = tile Acc<{sums}, m, n>;
                 {zero}
                 {pipeline}for k in tiles(K, {bk}) {{ {product} }}
                 TSTORE(c.tile(m, n), acc);
             }}"
        );
        match self.depth {
            None => text,
            Some(depth) => text.replace('K', &depth.to_string()),
        }
    }

    fn tensors(&self, [m, n, k]: [usize; 3], content: Content, seed: u64) -> Vec<Tensor> {
        let [a, b] = self.turned;
        let left = if a { [k, m] } else { [m, k] };
        let right = if b { [n, k] } else { [k, n] };
        vec![
            noise(self.factors, &left, content, seed),
            noise(self.right.unwrap_or(self.factors), &right, content, seed + 1),
            Tensor::zeros(self.result, &[m, n]).expect("small"),
        ]
    }

    /// The launch has the interpreter's bits, in some orders.
    fn check(&self, size: [usize; 3], content: Content, seeds: std::ops::Range<u64>) -> Result<(), String> {
        let text = self.text();
        let (middle, ptx) = build_unit(&text, &[]).map_err(|why| format!("{why}\n{text}"))?;
        if !multiplies(&ptx) {
            let why = find(&middle.prepared.placed.kernel, target()).err();
            return Err(format!("it is not on the tensor cores: {why:?}\n{text}"));
        }
        let [m, n, k] = size;
        let dims = [("M", m as i64), ("N", n as i64), ("K", k as i64)];
        let tensors = self.tensors(size, content, seeds.start);
        let want = middle.interpret_on_unit(&dims, &tensors).map_err(|(code, why)| format!("{code}: {why}"))?;
        for seed in seeds {
            let others = self.right.unwrap_or(self.factors);
            let name = format!("unit_{}_{others}_{}_{seed}", self.factors, size.map(|n| n.to_string()).join("_"));
            ptx.gives(&dims, &tensors, &want, (&name, seed)).map_err(|why| format!("{self:?} {size:?}: {why}"))?;
        }
        Ok(())
    }
}

fn target() -> &'static Target {
    Target::builtin("sm90").expect("a target")
}

/// Whether the code has products of the tensor cores.
fn multiplies(ptx: &Ptx) -> bool {
    ptx.code.kernel.insts().any(|inst| matches!(inst.op, Op::Sm90(Sm90::Wgmma(_) | Sm90::MmaSync(_))))
}

/// Sizes: whole blocks that bulk copies take; tails that they take; tails of odd lengths, which they do not; a product
/// of nothing; less than a step.
const SIZES: [[usize; 3]; 5] = [[128, 64, 128], [72, 136, 200], [67, 33, 97], [5, 7, 0], [1, 1, 1]];

#[test]
fn products_have_the_interpreters_bits() {
    for size in SIZES {
        Product::new([64, 64, 64]).check(size, Content::Tame, 1..3).unwrap_or_else(|e| panic!("{e}"));
    }
    for turned in [[true, false], [false, true], [true, true]] {
        let product = Product { turned, ..Product::new([64, 32, 32]) };
        for size in [[72, 40, 136], [67, 33, 97]] {
            product.check(size, Content::Wild, 1..2).unwrap_or_else(|e| panic!("{e}"));
        }
    }
    let large = Product { result: DType::BF16, factors: DType::BF16, raster: true, ..Product::new([128, 256, 64]) };
    large.check([136, 264, 72], Content::Tame, 5..6).unwrap_or_else(|e| panic!("{e}"));
    for size in [[130, 18, 40], [128, 16, 48]] {
        let depth = Some(size[2]);
        let first = Product { depth, stages: 1, result: DType::F16, ..Product::new([128, 16, 16]) };
        first.check(size, Content::Wild, 7..9).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// Factors of one byte: rows of k are read as they are, columns are gathered. Of integers the sums are a chain's.
#[test]
fn products_of_bytes() {
    let (e4m3, e5m2, i8) = (DType::F8E4M3, DType::F8E5M2, DType::I8);
    let sizes = [[72, 40, 144], [67, 33, 97], [64, 48, 65], [5, 7, 0]];
    for factors in [[i8; 2], [e4m3; 2], [e4m3, e5m2], [e5m2, e4m3]] {
        for turned in [[false, true], [false, false], [true, false]] {
            let product = Product { turned, ..Product::bytes(factors, [64, 32, 64]) };
            for size in sizes {
                product.check(size, Content::Tame, 1..2).unwrap_or_else(|e| panic!("{e}"));
            }
        }
    }
    let large = Product { turned: [false, true], ..Product::bytes([i8; 2], [128, 256, 128]) };
    large.check([136, 272, 160], Content::Wild, 5..6).unwrap_or_else(|e| panic!("{e}"));
    let large = Product { turned: [false, true], ..Product::bytes([e5m2; 2], [128, 128, 32]) };
    large.check([136, 144, 160], Content::Wild, 5..6).unwrap_or_else(|e| panic!("{e}"));
    let (middle, _) = build_unit(&large.text(), &[]).unwrap_or_else(|e| panic!("{e}"));
    let product = find(&middle.prepared.placed.kernel, target()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((product.factors, product.profile), ([e5m2; 2], MmaType::E5m2.profile()));
}

/// Few rows: the product is turned round.
#[test]
fn products_of_few_rows() {
    for (tile, turned) in [
        ([16, 64, 64], [false; 2]),
        ([32, 128, 32], [true, true]),
        ([16, 128, 64], [false, true]),
        // By warps.
        ([16, 32, 64], [false, true]),
        ([16, 16, 64], [false; 2]),
        ([32, 32, 128], [true, false]),
        ([32, 16, 64], [true, true]),
    ] {
        let product = Product { turned, result: DType::F16, ..Product::new(tile) };
        for size in [[8, 136, 200], [33, 65, 97], [16, 64, 64]] {
            product.check(size, Content::Tame, 1..2).unwrap_or_else(|e| panic!("{e}"));
        }
    }
    let bytes = Product { turned: [false, true], ..Product::bytes([DType::F8E4M3, DType::F8E5M2], [16, 64, 64]) };
    bytes.check([9, 72, 144], Content::Tame, 1..2).unwrap_or_else(|e| panic!("{e}"));
}

/// Shapes, sizes and orders that look random.
#[test]
fn random_products() {
    let mut x = 0x1234_5678_9abc_def1u64;
    let mut below = |n: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x % n
    };
    for case in 0..cases::<u64>(8, 400) {
        let tile = [64 << below(2), 16 * (1 + below(16)), 16 * (1 + below(4))].map(|n| n as u32);
        let mut product = Product {
            factors: [DType::F16, DType::BF16][below(2) as usize],
            result: [DType::F32, DType::F16, DType::BF16][below(3) as usize],
            turned: [below(2) == 0, below(2) == 0],
            stages: 1 + below(4) as u32,
            raster: below(3) == 0,
            ..Product::new(tile)
        };
        // Multiples of eight are what bulk copies take.
        let step = [1, 8][below(2) as usize];
        let sizes = [150, 150, 200].map(|most| (step * (1 + below(most / step))) as usize);
        // One step is no loop.
        product.depth = Some(sizes[2]).filter(|depth| below(3) == 0 && *depth > product.tile[2] as usize);
        let content = if below(2) == 0 { Content::Tame } else { Content::Wild };
        product.check(sizes, content, case..case + 1).unwrap_or_else(|e| panic!("case {case}: {e}"));
    }
}

/// Factors of f32 in mode TF32: the copy engine rounds them on their way; what it cannot bring is rounded by threads.
#[test]
fn numbers_of_f32_become_tf32() {
    let product = |tile| Product { factors: DType::F32, ..Product::new(tile) };
    for size in [[128, 64, 128], [72, 136, 204], [67, 33, 97], [5, 7, 0]] {
        for turned in [[false, true], [false, false]] {
            let product = Product { turned, ..product([64, 64, 32]) };
            product.check(size, Content::Tame, 1..2).unwrap_or_else(|e| panic!("{e}"));
        }
    }
    for turned in [[false, true], [true, false]] {
        let product = Product { turned, ..product([64, 32, 40]) };
        product.check([72, 40, 136], Content::Wild, 1..3).unwrap_or_else(|e| panic!("{e}"));
    }
    let large = Product { turned: [false, true], depth: Some(80), stages: 1, ..product([128, 256, 16]) };
    large.check([136, 264, 80], Content::Tame, 5..6).unwrap_or_else(|e| panic!("{e}"));
    // Numbers in the middle between two of TF32, by bulk copies and by elements.
    let text = Product { turned: [false, true], ..product([64, 32, 32]) }.text();
    let (middle, ptx) = build_unit(&text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for size in [[70, 40, 96], [33, 21, 51]] {
        let [m, n, k] = size;
        let dims = [("M", m as i64), ("N", n as i64), ("K", k as i64)];
        let mut tensors = Product { turned: [false, true], ..product([64, 32, 32]) }.tensors(size, Content::Tame, 9);
        for tensor in &mut tensors[..2] {
            for i in 0..tensor.len() {
                let bits = tensor.get_bits(i) & !0x1fff | 0x1000;
                tensor.set_bits(i, bits);
            }
        }
        let want = middle.interpret_on_unit(&dims, &tensors).unwrap_or_else(|e| panic!("{e:?}"));
        let name = format!("unit_ties_{m}_{n}_{k}");
        ptx.gives(&dims, &tensors, &want, (&name, 2)).unwrap_or_else(|e| panic!("{e}"));
    }
    // Without the mode, and with the other way of rounding, sums are chains.
    for mode in ["", ", TF32", ", TF32, Round", ", HF32"] {
        let text = product([64, 64, 32]).text().replace(", TF32, Rint", mode);
        let (middle, ptx) = build_unit(&text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert!(!multiplies(&ptx), "{text}");
        let dims = [("M", 20), ("N", 30), ("K", 40)];
        let tensors = product([64, 64, 32]).tensors([20, 30, 40], Content::Tame, 1);
        let chain = middle.interpret(&dims, &tensors).unwrap_or_else(|e| panic!("{e:?}"));
        let same = middle.interpret_on_unit(&dims, &tensors).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(chain[2].bytes(), same[2].bytes());
    }
}

/// Every barrier, wait, fence, commit and arrival is needed: without it a launch is refused, or wrong, in one of some
/// orders, for operands by bulk copies or for others.
#[test]
fn nothing_can_be_left_out() {
    needed(&Product { stages: 2, ..Product::new([64, 16, 64]) }, 15);
}

#[test]
fn nothing_can_be_left_out_of_products_by_warps() {
    needed(&Product { stages: 2, ..Product::new([16, 32, 64]) }, 10);
}

fn needed(product: &Product, least: usize) {
    let (middle, ptx) = build_unit(&product.text(), &[]).unwrap_or_else(|e| panic!("{e}"));
    let all = deletions::deletions(&ptx.code.kernel);
    let launches = [[80, 16, 320], [80, 15, 319]].map(|size| {
        let [m, n, k] = size.map(|n| n as i64);
        let (dims, tensors) = ([("M", m), ("N", n), ("K", k)], product.tensors(size, Content::Tame, 3));
        let want = middle.interpret_on_unit(&dims, &tensors).unwrap_or_else(|e| panic!("{e:?}"));
        (dims, tensors, want)
    });
    let mut kept = Vec::new();
    for (name, kernel) in &all {
        let without = ptx.with_kernel(kernel.clone());
        let found = (0..8).any(|seed| {
            launches.iter().any(|(dims, tensors, want)| without.gives(dims, tensors, want, ("deleted", seed)).is_err())
        });
        if !found {
            kept.push(name);
        }
    }
    assert!(all.len() >= least, "{}", all.len());
    assert!(kept.is_empty(), "{kept:?}");
}

/// What does not fit says why, and has the sums of chains.
#[test]
fn what_does_not_fit() {
    let product = |tile| Product::new(tile).text();
    for (text, why) in [
        (product([48, 64, 64]), "a block has 48 rows"),
        (product([64, 272, 64]), "a block has 272 columns"),
        (product([64, 64, 40]), "a loop is not one product over k"),
        (product([64, 40, 64]), "a loop is not one product over k"),
    ] {
        let (middle, ptx) = build_unit(&text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let refused = find(&middle.prepared.placed.kernel, target()).expect_err("refused");
        assert!(refused.starts_with(why), "{refused}\n{text}");
        assert!(!multiplies(&ptx), "{text}");
        let dims = [("M", 70), ("N", 72), ("K", 96)];
        let tensors = Product::new([64, 64, 64]).tensors([70, 72, 96], Content::Tame, 1);
        let chain = middle.interpret(&dims, &tensors).unwrap_or_else(|e| panic!("{e:?}"));
        let same = middle.interpret_on_unit(&dims, &tensors).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(chain[2].bytes(), same[2].bytes());
        ptx.gives(&dims, &tensors, &chain, ("chain", 1)).unwrap_or_else(|e| panic!("{e}"));
    }
    // Products of f32 do not ask for it.
    let text = product([64, 64, 64]).replace("f16", "f32");
    let (middle, _) = build_unit(&text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(find(&middle.prepared.placed.kernel, target()), Err(String::new()));
}

/// The unit's sums are others than a chain's, and the target's file says what the interpreter of PTX does.
#[test]
fn sums_are_the_units() {
    let product = Product::new([64, 64, 64]);
    let (middle, _) = build_unit(&product.text(), &[]).unwrap_or_else(|e| panic!("{e}"));
    let dims = [("M", 64), ("N", 64), ("K", 256)];
    let noise = |seed| ptoc_tensor::random(DType::F16, &[64, 256], seed, "a").expect("small");
    let turned = Tensor::from_bytes(DType::F16, &[256, 64], noise(2).bytes()).expect("as many");
    let tensors = [noise(1), turned, Tensor::zeros(DType::F32, &[64, 64]).expect("small")];
    let chain = middle.interpret(&dims, &tensors).unwrap_or_else(|e| panic!("{e:?}"));
    let unit = middle.interpret_on_unit(&dims, &tensors).unwrap_or_else(|e| panic!("{e:?}"));
    assert_ne!(chain[2].bytes(), unit[2].bytes());
    let of = |dtype| target().sum_profile(dtype);
    assert_eq!(of(DType::F16), MmaType::F16.profile());
    assert_eq!(of(DType::BF16), MmaType::Bf16.profile());
    assert_eq!(of(DType::F8E4M3), MmaType::E4m3.profile());
    assert_eq!(of(DType::F8E5M2), MmaType::E5m2.profile());
    assert_eq!(MmaType::S8.profile(), None::<SumProfile>);
    assert_eq!(of(DType::F32), None::<SumProfile>);
}

/// Sums of 8-bit floats are as near as `spec/numerics.md` says.
#[test]
fn sums_of_bytes_have_a_bound() {
    let profile = target().sum_profile(DType::F8E4M3).expect("it has one");
    for (seed, depth) in [(1, 32), (2, 100), (3, 1000), (4, 4096)] {
        let [a, b] = [0, 1].map(|n| ptoc_tensor::random(DType::F8E4M3, &[depth], seed + n, "a").expect("small"));
        let values = |t: &Tensor| -> Vec<f64> {
            (0..depth).map(|i| f64::from(ptoc_ir::scalar::to_f32(DType::F8E4M3, t.get_bits(i)))).collect()
        };
        let factors =
            |t: &Tensor| -> Vec<_> { (0..depth).map(|i| FactorType::E4m3.factor(t.get_bits(i) as u32)).collect() };
        let (x, y) = (values(&a), values(&b));
        let (left, right) = (factors(&a), factors(&b));
        let (mut sum, mut exact, mut greatest) = (0, 0.0, 0f64);
        for block in 0..depth.div_ceil(32) {
            let part = 32 * block..depth.min(32 * (block + 1));
            let types = (FactorType::E4m3, FactorType::E4m3);
            sum = profile.add(types, &left[part.clone()], &right[part.clone()], sum);
            for k in part {
                exact += x[k] * y[k];
                greatest = greatest.max((x[k] * y[k]).abs());
            }
            greatest = greatest.max(f64::from(f32::from_bits(sum)).abs());
        }
        let off = (f64::from(f32::from_bits(sum)) - exact).abs();
        let bound = 34.0 * depth.div_ceil(32) as f64 * 2f64.powi(-13) * greatest;
        assert!(off < bound, "{depth}: {off} and {bound}");
        assert!(depth < 1000 || off > 0.0, "it is exact");
    }
}

//! Single products, of every type and layout of operands.

use crate::model::{HALVES, Kind, block, words};
use half::{bf16, f16};
use ptoc_ptx::sim::{Global, SimLaunch, Swizzle, run};
use ptoc_ptx::{
    Address, Arith, Builder, Cmp, MmaType, Op, PtxKernel, Sm90, Space, Special, Src, Symbol, Type, VReg, Wgmma, parse,
    print, verify,
};

/// Columns.
const N: usize = 32;
/// Where the right operand lies in shared memory, and what is behind both.
const RIGHT: usize = 16384;
const END: usize = 32768;

/// A product, and how its operands lie.
#[derive(Clone, Copy, Debug)]
struct Case {
    product: Wgmma,
    swizzle: Swizzle,
    /// The slice of k that is taken from rows that are wider.
    slice: usize,
}

/// Bytes between parts of an operand: the leading and the stride offset of descriptors.
fn offsets(swizzle: Swizzle, transposed: bool) -> (usize, usize) {
    match (swizzle, transposed) {
        (Swizzle::None, _) => (2048, 128),
        (_, false) => (16, 8 * swizzle.span() as usize),
        (_, true) => (4096, 8 * swizzle.span() as usize),
    }
}

impl Case {
    /// Where byte `b` of factor (`line`, `k`) lies, by the canonical layouts of CUTLASS.
    fn place(self, transposed: bool, size: usize, line: usize, k: usize, b: usize) -> usize {
        let (leading, stride) = offsets(self.swizzle, transposed);
        let span = self.swizzle.span() as usize;
        let at = match (self.swizzle, transposed) {
            (Swizzle::None, false) => {
                let byte = k * size + b;
                line / 8 * stride + line % 8 * 16 + byte / 16 * leading + byte % 16
            }
            (Swizzle::None, true) => line / 8 * stride + k / 8 * leading + k % 8 * 16 + line % 8 * 2 + b,
            (_, false) => line / 8 * stride + line % 8 * span + self.slice * 32 + k * size + b,
            (_, true) => {
                let per = span / 2;
                line / per * leading + k / 8 * stride + k % 8 * span + line % per * 2 + b
            }
        };
        match self.swizzle {
            Swizzle::None => at,
            _ => at ^ ((at >> 7) & (span / 16 - 1)) << 4,
        }
    }

    fn descriptor(self, b: &mut Builder, base: VReg, at: usize, transposed: bool) -> VReg {
        let (leading, stride) = offsets(self.swizzle, transposed);
        let slice = if transposed { 0 } else { 32 * self.slice };
        let low = b.arith(Arith::Add, Type::U32, &[base.into(), Src::Imm((at + slice) as u64)]);
        let low = b.arith(Arith::Shr, Type::U32, &[low.into(), Src::Imm(4)]);
        let low = b.arith(Arith::Or, Type::B32, &[low.into(), Src::Imm((leading as u64 >> 4) << 16)]);
        let mode = match self.swizzle {
            Swizzle::None => 0u64,
            Swizzle::B128 => 1,
            Swizzle::B64 => 2,
            Swizzle::B32 => 3,
        };
        let high = b.mov(Type::U32, Src::Imm(mode << 30 | stride as u64 >> 4));
        b.pair(low, high)
    }

    /// The operands come by a bulk copy; the product, once without and once with the sums before; sums go to memory.
    fn kernel(self) -> PtxKernel {
        let product = self.product;
        let mut b = Builder::new("product", 128);
        b.symbol(Symbol { name: "smem".into(), space: Space::Shared, align: 1024, size: Some(END as u32 + 8) });
        let params = ["from", "to"].map(|name| b.param(name, Type::U64));
        let [from, to] = params.map(|n| b.ld(Space::Param, Type::U64, Address::param(n)));
        let thread = b.mov(Type::U32, Src::Special(Special::Tid));
        let base = b.mov(Type::U32, Src::Symbol(0));
        let barrier = Address { disp: END as i32, ..Address::at(base) };
        let (ready, first) = (b.label(), b.setp(Cmp::Eq, Type::U32, thread, Src::Imm(0)));
        b.bra_if(first, false, ready);
        b.sm90(Sm90::MbarrierInit, &[], &[Src::Addr(barrier), Src::Imm(1)]);
        b.sm90(Sm90::FenceProxyAsync(Some(Space::Shared)), &[], &[]);
        b.sm90(Sm90::MbarrierArriveExpectTx, &[], &[Src::Addr(barrier), Src::Imm(END as u64)]);
        let source = Src::Addr(Address::at(from));
        b.sm90(Sm90::BulkLoad, &[], &[base_at(base), source, Src::Imm(END as u64), Src::Addr(barrier)]);
        b.place(ready);
        b.push(Op::Bar(0), &[], &[]);
        b.mbarrier_wait(barrier, Src::Imm(0));
        let lane = b.arith(Arith::And, Type::B32, &[thread.into(), Src::Imm(31)]);
        let warp = b.arith(Arith::Shr, Type::U32, &[thread.into(), Src::Imm(5)]);
        let [group, member] = [(Arith::Shr, Type::U32, 2), (Arith::And, Type::B32, 3)]
            .map(|(op, ty, n)| b.arith(op, ty, &[lane.into(), Src::Imm(n)]));
        let row = b.arith(Arith::MadLo, Type::U32, &[warp.into(), Src::Imm(16), group.into()]);
        let mut srcs = Vec::new();
        if product.a_in_regs {
            // Rows of 32 bytes, plainly, where the left operand would be in shared memory.
            let at = b.arith(Arith::MadLo, Type::U32, &[row.into(), Src::Imm(32), base.into()]);
            let at = b.arith(Arith::MadLo, Type::U32, &[member.into(), Src::Imm(4), at.into()]);
            for disp in [0, 256, 16, 256 + 16] {
                srcs.push(b.ld(Space::Shared, Type::B32, Address { disp, ..Address::at(at) }).into());
            }
        } else {
            srcs.push(self.descriptor(&mut b, base, 0, product.trans_a).into());
        }
        srcs.push(self.descriptor(&mut b, base, RIGHT, product.trans_b).into());
        let [no, yes] = [Cmp::Ne, Cmp::Eq].map(|cmp| b.setp(cmp, Type::U32, lane, lane));
        let sums: Vec<VReg> = (0..N / 2).map(|_| b.reg(product.a.sum())).collect();
        b.sm90(Sm90::WgmmaFence, &[], &[]);
        for adds in [no, yes] {
            let srcs: Vec<Src> = srcs.iter().copied().chain([adds.into()]).collect();
            b.sm90(Sm90::Wgmma(product), &sums, &srcs);
        }
        b.sm90(Sm90::WgmmaCommit, &[], &[]);
        b.sm90(Sm90::WgmmaWait(0), &[], &[]);
        let at = b.arith(Arith::MadWide, Type::U32, &[row.into(), Src::Imm(4 * N as u64), to.into()]);
        let at = b.arith(Arith::MadWide, Type::U32, &[member.into(), Src::Imm(8), at.into()]);
        for (n, pair) in sums.chunks(2).enumerate() {
            let disp = (n / 2 * 32 + n % 2 * 8 * 4 * N) as i32;
            let to = Src::Addr(Address { disp, ..Address::at(at) });
            let ty = if product.a == MmaType::S8 { Type::B32 } else { Type::F32 };
            b.push(Op::St(Space::Global, ty), &[], &[to, pair[0].into(), pair[1].into()]);
        }
        b.push(Op::Ret, &[], &[]);
        b.finish()
    }
}

fn base_at(base: VReg) -> Src {
    Src::Addr(Address::at(base))
}

/// What some bits are.
fn value(ty: MmaType, bits: u32) -> f64 {
    match ty {
        MmaType::F16 => f16::from_bits(bits as u16).to_f64(),
        MmaType::Bf16 => bf16::from_bits(bits as u16).to_f64(),
        MmaType::Tf32 => f64::from(f32::from_bits(bits & !0x1fff)),
        MmaType::E5m2 => f16::from_bits((bits << 8) as u16).to_f64(),
        MmaType::S8 => f64::from(bits as u8 as i8),
        MmaType::E4m3 => {
            let (exp, fraction) = ((bits >> 3 & 15) as i32, f64::from(bits & 7) / 8.0);
            let size = if exp == 0 { fraction / 64.0 } else { (1.0 + fraction) * f64::from(exp - 7).exp2() };
            if bits & 0x80 == 0 { size } else { -size }
        }
    }
}

/// Finite bits that look random, near 1 for the wide types.
fn factor(ty: MmaType, word: u32) -> u32 {
    let near = |top: u32, digits: u32| {
        let exp = (1 << (top - 1)) - 1 - 8 + (word >> 20) % 12;
        (word & 1) << (top + digits) | exp << digits | word >> 2 & ((1 << digits) - 1)
    };
    match ty {
        MmaType::F16 => near(5, 10),
        MmaType::Bf16 => near(8, 7),
        MmaType::Tf32 => near(8, 23),
        MmaType::E4m3 if word & 0x7f == 0x7f => 0,
        MmaType::E5m2 if word & 0x7c == 0x7c => 0,
        MmaType::E4m3 | MmaType::E5m2 | MmaType::S8 => word & 0xff,
    }
}

fn kind(a: MmaType, b: MmaType) -> Kind {
    let least = |ty: MmaType| match ty {
        MmaType::F16 | MmaType::E5m2 => -14,
        MmaType::Bf16 | MmaType::Tf32 => -126,
        MmaType::E4m3 => -6,
        MmaType::S8 => 0,
    };
    let (depth, least) = (32 / a.size() as usize, [least(a), least(b)]);
    let (added, kept) = if a.size() == 1 { (13, 13) } else { (HALVES.added, HALVES.kept) };
    Kind { depth, least, added, kept }
}

fn check(case: Case) {
    let product = case.product;
    let kernel = case.kernel();
    verify(&kernel).unwrap_or_else(|e| panic!("{case:?}: {e}"));
    let text = print(&kernel);
    let kernel = parse(&text).unwrap_or_else(|e| panic!("{case:?}: {e}"));
    assert_eq!(print(&kernel), text);
    let mut word = words(11);
    let size = product.a.size() as usize;
    let k = 32 / size;
    let mut image = vec![0; END];
    let (mut left, mut right) = (vec![0.0; 64 * k], vec![0.0; N * k]);
    for (n, x) in left.iter_mut().enumerate() {
        let bits = factor(product.a, word());
        *x = value(product.a, bits) * if product.neg_a { -1.0 } else { 1.0 };
        for b in 0..size {
            let at = match product.a_in_regs {
                true => n * size + b,
                false => case.place(product.trans_a, size, n / k, n % k, b),
            };
            image[at] = bits.to_le_bytes()[b];
        }
    }
    for (n, x) in right.iter_mut().enumerate() {
        let bits = factor(product.b, word());
        *x = value(product.b, bits) * if product.neg_b { -1.0 } else { 1.0 };
        for b in 0..size {
            image[RIGHT + case.place(product.trans_b, size, n / k, n % k, b)] = bits.to_le_bytes()[b];
        }
    }
    let mut global = Global::default();
    let params = [global.add(image), global.add(vec![0xff; 64 * N * 4])];
    let (kernel, params, fuel) = (&kernel, &params, 1 << 16);
    let launch =
        SimLaunch { kernel, ctas: 1, shared: 0, params, seed: 1, fuel, races: true, aligned: true, keep_nan: false };
    run(&launch, &mut global).unwrap_or_else(|e| panic!("{case:?}: {e}"));
    for (n, got) in global.buffers[1].chunks(4).enumerate() {
        let (a, b) = (&left[n / N * k..][..k], &right[n % N * k..][..k]);
        if product.a == MmaType::S8 {
            let sum: f64 = a.iter().zip(b).map(|(a, b)| 2.0 * a * b).sum();
            assert_eq!(got, (sum as i32).to_le_bytes(), "{case:?}: [{}, {}]", n / N, n % N);
            continue;
        }
        let kind = kind(product.a, product.b);
        let once = block(kind, a, b, 0.0);
        let want = block(kind, a, b, once);
        assert_eq!(got, want.to_le_bytes(), "{case:?}: [{}, {}], {want}", n / N, n % N);
    }
    if let Some(folder) = std::env::var_os("PTX_DUMP") {
        let Wgmma { a, b, a_in_regs, trans_a, trans_b, .. } = product;
        let name = format!("hopper_{}_{}_{a_in_regs}_{trans_a}_{trans_b}.ptx", a.name(), b.name());
        std::fs::write(std::path::Path::new(&folder).join(name), text).expect("it is written");
    }
}

const TYPES: [(MmaType, MmaType); 8] = [
    (MmaType::F16, MmaType::F16),
    (MmaType::Bf16, MmaType::Bf16),
    (MmaType::Tf32, MmaType::Tf32),
    (MmaType::E4m3, MmaType::E4m3),
    (MmaType::E4m3, MmaType::E5m2),
    (MmaType::E5m2, MmaType::E4m3),
    (MmaType::E5m2, MmaType::E5m2),
    (MmaType::S8, MmaType::S8),
];

#[test]
fn types_of_factors() {
    for ((a, b), a_in_regs) in TYPES.into_iter().flat_map(|types| [(types, false), (types, true)]) {
        let signs = a != MmaType::S8;
        let (neg_a, neg_b) = (signs && a_in_regs, signs && !a_in_regs);
        let product = Wgmma { b, a_in_regs, neg_a, neg_b, ..Wgmma::new(N as u16, a) };
        check(Case { product, swizzle: Swizzle::B128, slice: 3 });
    }
}

#[test]
fn layouts_of_operands() {
    let product = Wgmma::new(N as u16, MmaType::F16);
    for (swizzle, slices) in [(Swizzle::None, 1), (Swizzle::B32, 1), (Swizzle::B64, 2), (Swizzle::B128, 4)] {
        (0..slices).for_each(|slice| check(Case { product, swizzle, slice }));
        for (trans_a, trans_b) in [(true, false), (false, true), (true, true)] {
            let product = Wgmma { trans_a, trans_b, ..product };
            check(Case { product, swizzle, slice: 0 });
        }
    }
}

/// What there is none of.
#[test]
fn the_verifier_knows_products() {
    let wide = Wgmma { n: 264, ..Wgmma::new(8, MmaType::F16) };
    let odd = Wgmma::new(12, MmaType::F16);
    let turned = Wgmma { trans_b: true, ..Wgmma::new(8, MmaType::E4m3) };
    let mixed = Wgmma { b: MmaType::Bf16, ..Wgmma::new(8, MmaType::F16) };
    let registers = Wgmma { trans_a: true, a_in_regs: true, ..Wgmma::new(8, MmaType::F16) };
    let columns = Wgmma::new(40, MmaType::S8);
    let negative = Wgmma { neg_a: true, ..Wgmma::new(8, MmaType::S8) };
    let signs = Wgmma { b: MmaType::E4m3, ..Wgmma::new(8, MmaType::S8) };
    for product in [wide, odd, turned, mixed, registers, columns, negative, signs] {
        assert_eq!(Sm90::Wgmma(product).slots(), None, "{product:?}");
    }
}

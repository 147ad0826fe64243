//! Instructions of Hopper that complete later, and what waits for them or orders memory for them.
//!
//! Each says once how it is written ([`Sm90::slots`]); printer, parser and verifier follow that.

use crate::inst::OperandClass;
use crate::types::{Class, Space};
use ptoc_tensor::matrix_unit::{Factor, FactorType, SumProfile};

/// Factors of a product on the tensor cores. Sums are of f32; of integers, of i32, which wrap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum MmaType {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    S8,
}

impl MmaType {
    /// Every one.
    pub const ALL: [MmaType; 6] =
        [MmaType::F16, MmaType::Bf16, MmaType::Tf32, MmaType::E4m3, MmaType::E5m2, MmaType::S8];

    /// The modifier.
    pub fn name(self) -> &'static str {
        match self {
            MmaType::F16 => "f16",
            MmaType::Bf16 => "bf16",
            MmaType::Tf32 => "tf32",
            MmaType::E4m3 => "e4m3",
            MmaType::E5m2 => "e5m2",
            MmaType::S8 => "s8",
        }
    }

    /// Bytes of a factor.
    pub fn size(self) -> u32 {
        match self {
            MmaType::F16 | MmaType::Bf16 => 2,
            MmaType::Tf32 => 4,
            MmaType::E4m3 | MmaType::E5m2 | MmaType::S8 => 1,
        }
    }

    /// The register of a sum.
    pub fn sum(self) -> Class {
        if self == MmaType::S8 { Class::B32 } else { Class::F32 }
    }

    /// The same for the arithmetic of sums; `None` of integers.
    pub(crate) fn factors(self) -> Option<FactorType> {
        Some(match self {
            MmaType::F16 => FactorType::F16,
            MmaType::Bf16 => FactorType::Bf16,
            MmaType::Tf32 => FactorType::Tf32,
            MmaType::E4m3 => FactorType::E4m3,
            MmaType::E5m2 => FactorType::E5m2,
            MmaType::S8 => return None,
        })
    }

    /// The factor of some bits. An integer is one without digits behind the point.
    pub(crate) fn factor(self, bits: u32) -> Factor {
        match self.factors() {
            Some(ty) => ty.factor(bits),
            None => Factor::Finite { sig: i32::from(bits as u8 as i8), exp: 0 },
        }
    }

    /// How an H100 adds products of such factors: a block is 32 bytes of them. `None` for integers: sums are exact.
    pub fn profile(self) -> Option<SumProfile> {
        let (addend_digits, sum_digits) = if self.size() == 1 { (13, 13) } else { (25, 23) };
        self.factors().map(|_| SumProfile { block: 32 / self.size(), addend_digits, sum_digits })
    }
}

/// `wgmma.mma_async`: 64 rows, 32 bytes of k.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Wgmma {
    /// Columns: a multiple of 8, at most 256.
    pub n: u16,
    /// Factors on the left.
    pub a: MmaType,
    /// Factors on the right.
    pub b: MmaType,
    /// The left operand is four registers, not a descriptor of shared memory.
    pub a_in_regs: bool,
    /// The left operand is negated.
    pub neg_a: bool,
    /// The right operand is negated.
    pub neg_b: bool,
    /// The left operand is MN-major in shared memory: factors of 16 bits alone.
    pub trans_a: bool,
    /// The right operand is.
    pub trans_b: bool,
}

impl Wgmma {
    /// A product of two descriptors of K-major operands.
    pub fn new(n: u16, ty: MmaType) -> Wgmma {
        let (a_in_regs, neg_a, neg_b, trans_a, trans_b) = (false, false, false, false, false);
        Wgmma { n, a: ty, b: ty, a_in_regs, neg_a, neg_b, trans_a, trans_b }
    }

    /// The depth: 32 bytes of factors.
    pub fn k(self) -> u32 {
        32 / self.a.size()
    }

    fn exists(self) -> bool {
        let wide = self.a.size() == 2;
        let integers = self.a == MmaType::S8;
        let f8 = |ty: MmaType| ty.size() == 1 && ty != MmaType::S8;
        let types = self.a == self.b || (f8(self.a) && f8(self.b));
        let step = if integers && self.n > 32 { 16 } else { 8 };
        let n = self.n >= 8 && self.n <= 256 && self.n.is_multiple_of(step);
        n && types
            && !(integers && (self.neg_a || self.neg_b))
            && (wide || !(self.trans_a || self.trans_b))
            && !(self.a_in_regs && self.trans_a)
    }
}

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sm90 {
    /// Makes an `mbarrier` at an address, for a count of arrivals.
    MbarrierInit,
    /// The end of one.
    MbarrierInval,
    /// So many arrivals.
    MbarrierArrive,
    /// An arrival, and so many bytes more that the phase waits for.
    MbarrierArriveExpectTx,
    /// So many arrivals at an `mbarrier` of a CTA of the cluster, at an address of [`Sm90::Mapa`]. It is a release of
    /// the CTA's scope, as CUTLASS has it, which suffices for what asynchronous operations have read: a release of the
    /// cluster's is a barrier of the whole device's memory on a card, at each arrival.
    MbarrierArriveCluster,
    /// So many bytes more that the phase waits for.
    MbarrierExpectTx,
    /// Whether the phase of a parity is complete; it may wait for that, or not.
    MbarrierTryWait,
    /// The same without a wait.
    MbarrierTestWait,
    /// 16 bytes from global to shared memory by the thread itself, later: so many of them, and zeros behind.
    CpAsync,
    /// An arrival when all of the thread's [`Sm90::CpAsync`] before are done. It is one of those that the `mbarrier`
    /// counts. What they have written is of the generic proxy.
    CpAsyncArrive,
    /// Waits for all of the thread's [`Sm90::CpAsync`].
    CpAsyncWait,
    /// Bytes from global to shared memory; an `mbarrier` gets their number.
    BulkLoad,
    /// Bytes from shared to global memory.
    BulkStore,
    /// A box of a tensor of so many dimensions to shared memory; an `mbarrier` gets the number of bytes.
    TensorLoad(u8),
    /// The same to each CTA of a mask of the cluster: to the same place there, and for the `mbarrier` there.
    TensorMulticast(u8),
    /// A box of a tensor from shared memory.
    TensorStore(u8),
    /// The thread's bulk stores since the last one are a group.
    BulkCommit,
    /// Waits for all but the `pending` most recent groups; with `read` until they have read shared memory.
    BulkWait {
        /// Groups that may be under way.
        pending: u32,
        /// Only the reads.
        read: bool,
    },
    /// Orders accesses of the generic proxy before those of the async proxy, in one memory or in all.
    FenceProxyAsync(Option<Space>),
    /// Lets the async proxy see every `mbarrier` that this thread has made.
    FenceMbarrierInit,
    /// Orders accesses to registers before those by products that follow.
    WgmmaFence,
    /// A product.
    Wgmma(Wgmma),
    /// The warp's products since the last one are a group.
    WgmmaCommit,
    /// Waits for all but so many of the most recent groups.
    WgmmaWait(u32),
    /// Loads `count` matrices of 8 x 8 elements of 16 bits.
    LdMatrix {
        /// 1, 2 or 4.
        count: u8,
        /// Transposed.
        trans: bool,
    },
    /// Stores `count` matrices of 8 x 8 elements of 16 bits.
    StMatrix {
        /// 1, 2 or 4.
        count: u8,
        /// Transposed.
        trans: bool,
    },
    /// Takes registers for each thread of the warp, or gives them back.
    SetMaxReg {
        /// Takes.
        inc: bool,
        /// How many a thread has then.
        count: u32,
    },
    /// A barrier by number, of so many threads.
    BarSync,
    /// An arrival there, without a wait.
    BarArrive,
    /// The lanes of a mask.
    BarWarpSync,
    /// A product of a warp, 16 x 8 with 16 of k, of factors of 16 bits in registers, added to sums.
    MmaSync(MmaType),
    /// One lane of a mask, always the same.
    ElectSync,
    /// Asks for a tensor map.
    PrefetchTensorMap,
    /// An address of this CTA's shared memory as that of the CTA of a rank.
    Mapa,
    /// Arrives at the barrier of all threads of the cluster.
    ClusterArrive,
    /// Waits there for the others.
    ClusterWait,
}

/// A place in the text of an instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Slot {
    /// A result.
    Dst(OperandClass),
    /// A result behind `_|`.
    DstBehindSink(OperandClass),
    /// So many results in braces.
    Dsts(OperandClass, usize),
    /// An operand.
    Src(OperandClass),
    /// So many operands in braces.
    Srcs(OperandClass, usize),
    /// `[map, {coordinates}]`.
    Map(usize),
    /// `_`
    Sink,
    /// A number that is part of the instruction.
    Literal(i64),
}

const SHARED: Slot = Slot::Src(OperandClass::Addr(Space::Shared));
const GLOBAL: Slot = Slot::Src(OperandClass::Addr(Space::Global));
const NUMBER: Slot = Slot::Src(OperandClass::Value(Class::B32));
const PRED: Slot = Slot::Dst(OperandClass::Reg(Class::Pred));

/// Every instruction but products, waits and `setmaxnreg`, which have numbers.
fn numberless() -> Vec<Sm90> {
    let mut all = vec![
        Sm90::MbarrierInit,
        Sm90::MbarrierInval,
        Sm90::MbarrierArrive,
        Sm90::MbarrierArriveExpectTx,
        Sm90::MbarrierExpectTx,
        Sm90::MbarrierTryWait,
        Sm90::MbarrierTestWait,
        Sm90::CpAsync,
        Sm90::CpAsyncArrive,
        Sm90::CpAsyncWait,
        Sm90::BulkLoad,
        Sm90::BulkStore,
        Sm90::BulkCommit,
        Sm90::FenceProxyAsync(None),
        Sm90::FenceProxyAsync(Some(Space::Shared)),
        Sm90::FenceProxyAsync(Some(Space::Global)),
        Sm90::FenceMbarrierInit,
        Sm90::WgmmaFence,
        Sm90::WgmmaCommit,
        Sm90::MmaSync(MmaType::F16),
        Sm90::MmaSync(MmaType::Bf16),
        Sm90::BarSync,
        Sm90::BarArrive,
        Sm90::BarWarpSync,
        Sm90::ElectSync,
        Sm90::PrefetchTensorMap,
        Sm90::MbarrierArriveCluster,
        Sm90::Mapa,
        Sm90::ClusterArrive,
        Sm90::ClusterWait,
    ];
    all.extend((1..=5).flat_map(|n| [Sm90::TensorLoad(n), Sm90::TensorMulticast(n), Sm90::TensorStore(n)]));
    for (count, trans) in [1, 2, 4].into_iter().flat_map(|count| [(count, false), (count, true)]) {
        all.extend([Sm90::LdMatrix { count, trans }, Sm90::StMatrix { count, trans }]);
    }
    all
}

impl Sm90 {
    /// The mnemonic.
    pub fn name(self) -> String {
        let matrix = |word: &str, count: u8, trans: bool| {
            let trans = if trans { ".trans" } else { "" };
            format!("{word}matrix.sync.aligned.m8n8.x{count}{trans}.shared.b16")
        };
        let bulk_load = "shared::cluster.global.mbarrier::complete_tx::bytes";
        let bulk_store = "global.shared::cta.bulk_group";
        match self {
            Sm90::MbarrierInit => "mbarrier.init.shared::cta.b64".into(),
            Sm90::MbarrierInval => "mbarrier.inval.shared::cta.b64".into(),
            Sm90::MbarrierArrive => "mbarrier.arrive.shared::cta.b64".into(),
            Sm90::MbarrierArriveCluster => "mbarrier.arrive.shared::cluster.b64".into(),
            Sm90::MbarrierArriveExpectTx => "mbarrier.arrive.expect_tx.shared::cta.b64".into(),
            Sm90::MbarrierExpectTx => "mbarrier.expect_tx.relaxed.cta.shared::cta.b64".into(),
            Sm90::MbarrierTryWait => "mbarrier.try_wait.parity.shared::cta.b64".into(),
            Sm90::MbarrierTestWait => "mbarrier.test_wait.parity.shared::cta.b64".into(),
            Sm90::CpAsync => "cp.async.cg.shared.global".into(),
            Sm90::CpAsyncArrive => "cp.async.mbarrier.arrive.noinc.shared::cta.b64".into(),
            Sm90::CpAsyncWait => "cp.async.wait_all".into(),
            Sm90::BulkLoad => format!("cp.async.bulk.{bulk_load}"),
            Sm90::BulkStore => format!("cp.async.bulk.{bulk_store}"),
            Sm90::TensorLoad(rank) => format!("cp.async.bulk.tensor.{rank}d.{bulk_load}"),
            Sm90::TensorMulticast(rank) => format!("cp.async.bulk.tensor.{rank}d.{bulk_load}.multicast::cluster"),
            Sm90::TensorStore(rank) => format!("cp.async.bulk.tensor.{rank}d.{bulk_store}"),
            Sm90::BulkCommit => "cp.async.bulk.commit_group".into(),
            Sm90::BulkWait { read: false, .. } => "cp.async.bulk.wait_group".into(),
            Sm90::BulkWait { read: true, .. } => "cp.async.bulk.wait_group.read".into(),
            Sm90::FenceProxyAsync(None) => "fence.proxy.async".into(),
            Sm90::FenceProxyAsync(Some(Space::Shared)) => "fence.proxy.async.shared::cta".into(),
            Sm90::FenceProxyAsync(Some(space)) => format!("fence.proxy.async.{}", space.name()),
            Sm90::FenceMbarrierInit => "fence.mbarrier_init.release.cluster".into(),
            Sm90::WgmmaFence => "wgmma.fence.sync.aligned".into(),
            Sm90::Wgmma(Wgmma { n, a, b, .. }) => {
                let k = 32 / a.size();
                let sums = if a == MmaType::S8 { "s32" } else { "f32" };
                format!("wgmma.mma_async.sync.aligned.m64n{n}k{k}.{sums}.{}.{}", a.name(), b.name())
            }
            Sm90::WgmmaCommit => "wgmma.commit_group.sync.aligned".into(),
            Sm90::WgmmaWait(_) => "wgmma.wait_group.sync.aligned".into(),
            Sm90::LdMatrix { count, trans } => matrix("ld", count, trans),
            Sm90::StMatrix { count, trans } => matrix("st", count, trans),
            Sm90::SetMaxReg { inc: true, .. } => "setmaxnreg.inc.sync.aligned.u32".into(),
            Sm90::SetMaxReg { inc: false, .. } => "setmaxnreg.dec.sync.aligned.u32".into(),
            Sm90::BarSync => "bar.sync".into(),
            Sm90::BarArrive => "bar.arrive".into(),
            Sm90::BarWarpSync => "bar.warp.sync".into(),
            Sm90::MmaSync(ty) => {
                format!("mma.sync.aligned.m16n8k16.row.col.f32.{0}.{0}.f32", ty.name())
            }
            Sm90::ElectSync => "elect.sync".into(),
            Sm90::PrefetchTensorMap => "prefetch.tensormap".into(),
            Sm90::Mapa => "mapa.shared::cluster.u32".into(),
            Sm90::ClusterArrive => "barrier.cluster.arrive.release.aligned".into(),
            Sm90::ClusterWait => "barrier.cluster.wait.acquire.aligned".into(),
        }
    }

    /// The text's places in order; `None` where there is no such instruction.
    pub fn slots(self) -> Option<Vec<Slot>> {
        let matrices = |count: u8| matches!(count, 1 | 2 | 4);
        let word = OperandClass::Reg(Class::B32);
        Some(match self {
            Sm90::MbarrierInit => vec![SHARED, NUMBER],
            Sm90::MbarrierInval => vec![SHARED],
            Sm90::MbarrierArrive | Sm90::MbarrierArriveCluster | Sm90::MbarrierArriveExpectTx => {
                vec![Slot::Sink, SHARED, NUMBER]
            }
            Sm90::MbarrierExpectTx => vec![SHARED, NUMBER],
            Sm90::MbarrierTryWait | Sm90::MbarrierTestWait => vec![PRED, SHARED, NUMBER],
            Sm90::CpAsync => vec![SHARED, GLOBAL, Slot::Literal(16), NUMBER],
            Sm90::CpAsyncArrive => vec![SHARED],
            Sm90::BulkLoad => vec![SHARED, GLOBAL, NUMBER, SHARED],
            Sm90::BulkStore => vec![GLOBAL, SHARED, NUMBER],
            Sm90::TensorLoad(rank @ 1..=5) => vec![SHARED, Slot::Map(rank.into()), SHARED],
            Sm90::TensorMulticast(rank @ 1..=5) => {
                vec![SHARED, Slot::Map(rank.into()), SHARED, Slot::Src(OperandClass::Reg(Class::B16))]
            }
            Sm90::TensorStore(rank @ 1..=5) => vec![Slot::Map(rank.into()), SHARED],
            Sm90::BulkWait { pending, .. } | Sm90::WgmmaWait(pending) => vec![Slot::Literal(pending.into())],
            Sm90::FenceProxyAsync(None | Some(Space::Shared | Space::Global))
            | Sm90::BulkCommit
            | Sm90::CpAsyncWait
            | Sm90::FenceMbarrierInit
            | Sm90::WgmmaFence
            | Sm90::WgmmaCommit
            | Sm90::ClusterArrive
            | Sm90::ClusterWait => vec![],
            Sm90::Wgmma(product) if product.exists() => wgmma_slots(product),
            Sm90::LdMatrix { count, .. } if matrices(count) => vec![Slot::Dsts(word, count.into()), SHARED],
            Sm90::StMatrix { count, .. } if matrices(count) => vec![SHARED, Slot::Srcs(word, count.into())],
            Sm90::SetMaxReg { count: n @ 24..=256, .. } if n.is_multiple_of(8) => vec![Slot::Literal(n.into())],
            Sm90::BarSync | Sm90::BarArrive => vec![NUMBER, NUMBER],
            Sm90::BarWarpSync => vec![NUMBER],
            Sm90::MmaSync(MmaType::F16 | MmaType::Bf16) => {
                let sums = OperandClass::Reg(Class::F32);
                vec![Slot::Dsts(sums, 4), Slot::Srcs(word, 4), Slot::Srcs(word, 2), Slot::Srcs(sums, 4)]
            }
            Sm90::ElectSync => vec![Slot::DstBehindSink(OperandClass::Reg(Class::Pred)), NUMBER],
            Sm90::PrefetchTensorMap => vec![GLOBAL],
            Sm90::Mapa => vec![Slot::Dst(OperandClass::Reg(Class::B32)), Slot::Src(word), NUMBER],
            _ => return None,
        })
    }

    /// The instruction of a mnemonic and its operands' text.
    pub(crate) fn read(name: &str, words: &[&str]) -> Option<Sm90> {
        let number = |n: usize| words.get(n)?.parse::<u32>().ok();
        match name {
            "cp.async.bulk.wait_group" => return Some(Sm90::BulkWait { pending: number(0)?, read: false }),
            "cp.async.bulk.wait_group.read" => return Some(Sm90::BulkWait { pending: number(0)?, read: true }),
            "wgmma.wait_group.sync.aligned" => return number(0).map(Sm90::WgmmaWait),
            "setmaxnreg.inc.sync.aligned.u32" => return Some(Sm90::SetMaxReg { inc: true, count: number(0)? }),
            "setmaxnreg.dec.sync.aligned.u32" => return Some(Sm90::SetMaxReg { inc: false, count: number(0)? }),
            _ => {}
        }
        match name.strip_prefix("wgmma.mma_async.sync.aligned.m64n") {
            Some(rest) => read_wgmma(rest, words).map(Sm90::Wgmma),
            None => numberless().into_iter().find(|op| op.name() == name),
        }
    }

    /// Whether all lanes of the warp execute it together.
    pub(crate) fn is_aligned(self) -> bool {
        matches!(
            self,
            Sm90::WgmmaFence
                | Sm90::Wgmma(_)
                | Sm90::WgmmaCommit
                | Sm90::WgmmaWait(_)
                | Sm90::LdMatrix { .. }
                | Sm90::StMatrix { .. }
                | Sm90::SetMaxReg { .. }
                | Sm90::MmaSync(_)
        )
    }
}

fn wgmma_slots(product: Wgmma) -> Vec<Slot> {
    let sign = |negative: bool| Slot::Literal(if negative { -1 } else { 1 });
    let descriptor = Slot::Src(OperandClass::Reg(Class::B64));
    let a = match product.a_in_regs {
        true => Slot::Srcs(OperandClass::Reg(Class::B32), 4),
        false => descriptor,
    };
    let scale = Slot::Src(OperandClass::Reg(Class::Pred));
    let sums = Slot::Dsts(OperandClass::Reg(product.a.sum()), usize::from(product.n) / 2);
    let mut slots = vec![sums, a, descriptor, scale];
    if product.a != MmaType::S8 {
        slots.extend([sign(product.neg_a), sign(product.neg_b)]);
    }
    if product.a.size() == 2 {
        slots.extend((!product.a_in_regs).then_some(Slot::Literal(product.trans_a.into())));
        slots.push(Slot::Literal(product.trans_b.into()));
    }
    slots
}

/// `128k16.f32.f16.f16`, and the operands.
fn read_wgmma(rest: &str, words: &[&str]) -> Option<Wgmma> {
    let (shape, types) = rest.split_once(".f32.").or(rest.split_once(".s32."))?;
    let (n, k) = shape.split_once('k')?;
    let (a, b) = types.split_once('.')?;
    let named = |name: &str| MmaType::ALL.into_iter().find(|ty| ty.name() == name);
    let a_in_regs = words.get(1)?.starts_with('{');
    let literal = |n: usize| words.get(n).is_some_and(|w| *w == "1");
    let product = Wgmma {
        n: n.parse().ok()?,
        a: named(a)?,
        b: named(b)?,
        a_in_regs,
        neg_a: words.get(4) == Some(&"-1"),
        neg_b: words.get(5) == Some(&"-1"),
        trans_a: !a_in_regs && literal(6),
        trans_b: literal(if a_in_regs { 6 } else { 7 }),
    };
    let sums = rest.contains(".s32.") == (product.a == MmaType::S8);
    (k.parse() == Ok(product.k()) && sums && product.exists()).then_some(product)
}

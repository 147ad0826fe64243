//! Names that every file knows: functions, words and modes. Dtypes, locations and instructions come from `isa`.

use ptoc_isa::{AtomicOp, BinOp, CmpOp, Loc, Oob, Order, Reduce, RoundMode, UnOp};
use ptoc_layout::Operand;
use ptoc_tensor::DType;
use rustc_hash::FxHashSet;
use std::sync::LazyLock;

/// A built-in function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Builtin {
    /// `tiles(n, size)`: 0..n cut into blocks.
    Tiles,
    /// `ceil_div(a, b)`
    CeilDiv,
    /// Element-wise unary function of scalars and tiles.
    Unary(UnOp),
    /// `min(a, b)`, `max(a, b)`
    Binary(BinOp),
    /// `pow(a, b)`
    Pow,
    /// `clamp(x, lo, hi)`
    Clamp,
    /// `select(c, a, b)`
    Select,
    /// `rowsum(t)`, ...
    RowReduce(Reduce),
    /// `colsum(t)`, ...
    ColReduce(Reduce),
    /// `rowargmax(t)`, ...
    RowArg(Reduce),
    /// `colargmax(t)`, ...
    ColArg(Reduce),
    /// `rowcumsum(t)`, ...
    RowScan(Reduce),
    /// `colcumsum(t)`, ...
    ColScan(Reduce),
    /// `packbits(mask)`
    PackBits,
    /// `matmul(a, b)` into a new accumulator.
    Matmul,
    /// `transpose(t)` of a Vec tile.
    Transpose,
    /// `iota(q, 1)`, `iota(1, k)`: the indices of a block as a tile.
    Iota,
    /// `bytes(t)`: storage of a tile.
    Bytes,
    /// `capacity(Vec)`: bytes of a memory of the target.
    Capacity,
    /// `is_simt()`: whether tiles of the target lie in registers of threads.
    IsSimt,
    /// `size(x)`: number of elements.
    Size,
    /// `rank(x)`
    Rank,
    /// `col(v)`: a rank-1 view as a column.
    Col,
    /// `sum<k>(e)`, in `ensures` only.
    Sum,
    /// `prod<k>(e)`, ..: other functions over an index, in `ensures` only.
    Over(Over),
    /// `close(a, b, rtol = x)`, in `ensures` only.
    Close,
    /// `print("..", x)`
    Print,
    /// `static_assert(c, "..")`
    StaticAssert,
    /// `assert(c, "..")` while the kernel runs.
    Assert,
    /// `atomic_add(x[i], v)`, ...
    Atomic(AtomicOp),
    /// `copy(dst, src)`
    Copy,
    /// `gather(x, (table, _))`
    Gather,
    /// `scatter(y, (table, _))`
    Scatter,
    /// `recast<T>(x)`
    Recast,
    /// An operation of the layout algebra, by its name in `ptoc_layout::ops`; and `layout`, `modes`, which are the
    /// language's own.
    Layout(&'static str),
    /// `tiled_mma(ATOM, atoms = .., tiler = ..)`
    TiledMma,
    /// `select_mma(f16, f16, f32, n)`
    SelectMma,
    /// `fragment_C(MMA, (BM, BN))`
    Fragment(Operand),
    /// `partition_C(MMA, x)`
    Partition(Operand),
    /// `mma(MMA, acc, a, b)`
    Mma,
    /// What orders pipes: `event`, `set`, `TSYNC`, ...
    Sync(SyncFn),
    /// Known, but of a later version: what it belongs to.
    NotYet(&'static str),
}

impl Builtin {
    /// What it is when it ranges over an index, as in `max<k>(e)`.
    pub fn over(self) -> Option<Over> {
        Some(match self {
            Builtin::Sum => Over::Sum,
            Builtin::Binary(BinOp::Max) => Over::Max,
            Builtin::Binary(BinOp::Min) => Over::Min,
            Builtin::Over(over) => over,
            _ => return None,
        })
    }
}

/// What ranges over an index in `ensures`: `max<k>(e)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Over {
    Sum,
    Prod,
    Max,
    Min,
    ArgMax,
    ArgMin,
    Any,
    All,
    Count,
    Sorted,
    Permutation,
}

impl Over {
    /// How `close` is called.
    pub const CLOSE_USAGE: &str = "close(a, b, rtol = 1e-3, atol = 1e-5)";

    /// Those whose names mean nothing outside of `ensures`.
    pub const ALL: [Over; 8] =
        [Over::Prod, Over::ArgMax, Over::ArgMin, Over::Any, Over::All, Over::Count, Over::Sorted, Over::Permutation];

    /// The name in the language.
    pub fn name(self) -> &'static str {
        let usage = self.usage();
        usage.split_once('<').map_or(usage, |(name, _)| name)
    }

    /// How it is called.
    pub fn usage(self) -> &'static str {
        match self {
            Over::Sum => "sum<k>(e)",
            Over::Prod => "prod<k>(e)",
            Over::Max => "max<k>(e)",
            Over::Min => "min<k>(e)",
            Over::ArgMax => "argmax<k>(e)",
            Over::ArgMin => "argmin<k>(e)",
            Over::Any => "any<k>(c)",
            Over::All => "all<k>(c)",
            Over::Count => "count<k>(c)",
            Over::Sorted => "sorted<k>(e)",
            Over::Permutation => "permutation<k>(e)",
        }
    }

    /// What it makes, for messages.
    pub fn noun(self) -> &'static str {
        match self {
            Over::Sum => "sum",
            Over::Prod => "product",
            Over::Max | Over::Min => "values",
            Over::ArgMax | Over::ArgMin | Over::Sorted | Over::Permutation => "list",
            Over::Any | Over::All | Over::Count => "condition",
        }
    }
}

/// A function that orders pipes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncFn {
    /// `event<P, Q>[n]`
    Event,
    /// `mbarrier<P, Q>(arrivals = n)[n]`
    MBarrier,
    /// `ring<P, Q>(tile T[n])`
    Ring,
    /// `set(e)`
    Set,
    /// `wait(e)`; of a transaction barrier `wait(b, parity)`.
    Wait,
    /// `barrier(P)`, `barrier()`
    Barrier,
    /// `arrive(b)`
    Arrive,
    /// `expect(b, bytes)`
    Expect,
    /// `arrive_and_expect(b, bytes)`
    ArriveExpect,
    /// `complete(b, bytes)`
    Complete,
    /// `TSYNC(e, ..)`: `wait`s; `TSYNC(P)`, `TSYNC()`: `barrier`.
    TSync,
    /// `TALLOC(r)`: `r.acquire()`
    TAlloc,
    /// `TPUSH(r)`: `r.commit()`; `TPUSH(r, t)`: acquire, TMOV, commit.
    TPush,
    /// `TPOP(r)`: `r.wait()`
    TPop,
    /// `TFREE(r)`: `r.release()`
    TFree,
}

impl SyncFn {
    /// Methods of a ring: those of its producer, then those of its consumer.
    pub const RING: [(&'static str, SyncFn); 4] =
        [("acquire", SyncFn::TAlloc), ("commit", SyncFn::TPush), ("wait", SyncFn::TPop), ("release", SyncFn::TFree)];

    /// Every one.
    pub const ALL: [SyncFn; 15] = [
        SyncFn::Event,
        SyncFn::MBarrier,
        SyncFn::Ring,
        SyncFn::Set,
        SyncFn::Wait,
        SyncFn::Barrier,
        SyncFn::Arrive,
        SyncFn::Expect,
        SyncFn::ArriveExpect,
        SyncFn::Complete,
        SyncFn::TSync,
        SyncFn::TAlloc,
        SyncFn::TPush,
        SyncFn::TPop,
        SyncFn::TFree,
    ];

    /// The name in the language.
    pub fn name(self) -> &'static str {
        match self {
            SyncFn::Event => "event",
            SyncFn::MBarrier => "mbarrier",
            SyncFn::Ring => "ring",
            SyncFn::Set => "set",
            SyncFn::Wait => "wait",
            SyncFn::Barrier => "barrier",
            SyncFn::Arrive => "arrive",
            SyncFn::Expect => "expect",
            SyncFn::ArriveExpect => "arrive_and_expect",
            SyncFn::Complete => "complete",
            SyncFn::TSync => "TSYNC",
            SyncFn::TAlloc => "TALLOC",
            SyncFn::TPush => "TPUSH",
            SyncFn::TPop => "TPOP",
            SyncFn::TFree => "TFREE",
        }
    }

    /// The ways to write it, and what it does.
    pub fn reference(self) -> (&'static [&'static str], &'static str) {
        match self {
            SyncFn::Event => (
                &["event<P, Q>", "event<P, Q>[n]"],
                "A flag, or n of them. P announces that its earlier work is done, and Q waits for it.",
            ),
            SyncFn::MBarrier => (
                &["mbarrier<P, Q>(arrivals = n)", "mbarrier<P, Q>(arrivals = n)[k]"],
                "A transaction barrier, or k of them. A phase ends with its n-th arrival, when all announced bytes \
                have come.",
            ),
            SyncFn::Ring => (
                &["ring<P, Q>(tile T[n])"],
                "n slots, with a flag for each of them in both directions. P fills them and Q empties them, in turn.",
            ),
            SyncFn::Set => (&["set(e)"], "Raises the flag when P has done its earlier work."),
            SyncFn::Wait => (
                &["wait(e)", "wait(b, parity)"],
                "Holds Q back until the flag is up, and takes it down; or while the barrier is in the phase of that \
                parity.",
            ),
            SyncFn::Barrier => (
                &["barrier(P)", "barrier()"],
                "Nothing later starts on P (on any pipe) before all earlier work of P (of every pipe) is done.",
            ),
            SyncFn::Arrive => (&["arrive(b)"], "One arrival, when P has done its earlier work."),
            SyncFn::Expect => (&["expect(b, bytes)"], "Announces bytes: the phase does not end before they have come."),
            SyncFn::ArriveExpect => {
                (&["arrive_and_expect(b, bytes)"], "Both in one step, so that the phase cannot end in between.")
            }
            SyncFn::Complete => (&["complete(b, bytes)"], "So many of the announced bytes have come."),
            SyncFn::TSync => {
                (&["TSYNC(e, ..)", "TSYNC(P)", "TSYNC()"], "`wait` for each of the events; `barrier(P)`; `barrier()`.")
            }
            SyncFn::TAlloc => (&["TALLOC(r)"], "`r.acquire()`: waits until the next slot is free, and gives it."),
            SyncFn::TPush => (
                &["TPUSH(r)", "TPUSH(r, t)"],
                "`r.commit()`: the slot is filled. With a tile: acquires a slot, moves the tile into it (TMOV), and \
                commits it.",
            ),
            SyncFn::TPop => (&["TPOP(r)"], "`r.wait()`: waits until the next slot is filled, and gives it."),
            SyncFn::TFree => (&["TFREE(r)"], "`r.release()`: the slot is free again."),
        }
    }

    /// Whether it is a type, whose static arguments are two pipes.
    pub fn is_type(self) -> bool {
        matches!(self, SyncFn::Event | SyncFn::MBarrier | SyncFn::Ring)
    }

    /// The function of that name.
    pub fn from_name(name: &str) -> Option<SyncFn> {
        SyncFn::ALL.into_iter().find(|f| f.name() == name)
    }
}

/// The built-in function called `name`.
pub fn function(name: &str) -> Option<Builtin> {
    use Builtin as B;
    Some(match name {
        "tiles" => B::Tiles,
        "ceil_div" => B::CeilDiv,
        "exp" => B::Unary(UnOp::Exp),
        "log" => B::Unary(UnOp::Log),
        "sqrt" => B::Unary(UnOp::Sqrt),
        "rsqrt" => B::Unary(UnOp::Rsqrt),
        "recip" => B::Unary(UnOp::Recip),
        "abs" => B::Unary(UnOp::Abs),
        "floor" => B::Unary(UnOp::Floor),
        "ceil" => B::Unary(UnOp::Ceil),
        "trunc" => B::Unary(UnOp::Trunc),
        "rint" => B::Unary(UnOp::Rint),
        "tanh" => B::Unary(UnOp::Tanh),
        "erf" => B::Unary(UnOp::Erf),
        "sin" => B::Unary(UnOp::Sin),
        "cos" => B::Unary(UnOp::Cos),
        "min" => B::Binary(BinOp::Min),
        "max" => B::Binary(BinOp::Max),
        "pow" => B::Pow,
        "clamp" => B::Clamp,
        "select" => B::Select,
        "rowsum" => B::RowReduce(Reduce::Sum),
        "rowmax" => B::RowReduce(Reduce::Max),
        "rowmin" => B::RowReduce(Reduce::Min),
        "colsum" => B::ColReduce(Reduce::Sum),
        "colmax" => B::ColReduce(Reduce::Max),
        "colmin" => B::ColReduce(Reduce::Min),
        "rowprod" => B::RowReduce(Reduce::Prod),
        "colprod" => B::ColReduce(Reduce::Prod),
        "rowcumsum" => B::RowScan(Reduce::Sum),
        "rowcumprod" => B::RowScan(Reduce::Prod),
        "rowcummax" => B::RowScan(Reduce::Max),
        "rowcummin" => B::RowScan(Reduce::Min),
        "colcumsum" => B::ColScan(Reduce::Sum),
        "colcumprod" => B::ColScan(Reduce::Prod),
        "colcummax" => B::ColScan(Reduce::Max),
        "colcummin" => B::ColScan(Reduce::Min),
        "rowargmax" => B::RowArg(Reduce::Max),
        "rowargmin" => B::RowArg(Reduce::Min),
        "colargmax" => B::ColArg(Reduce::Max),
        "colargmin" => B::ColArg(Reduce::Min),
        "packbits" => B::PackBits,
        "matmul" => B::Matmul,
        "transpose" => B::Transpose,
        "iota" => B::Iota,
        "bytes" => B::Bytes,
        "capacity" => B::Capacity,
        "is_simt" => B::IsSimt,
        "size" => B::Size,
        "rank" => B::Rank,
        "col" => B::Col,
        "sum" => B::Sum,
        "print" => B::Print,
        "static_assert" => B::StaticAssert,
        "assert" => B::Assert,
        "atomic_add" => B::Atomic(AtomicOp::Add),
        "atomic_max" => B::Atomic(AtomicOp::Max),
        "atomic_min" => B::Atomic(AtomicOp::Min),
        "atomic_and" => B::Atomic(AtomicOp::And),
        "atomic_or" => B::Atomic(AtomicOp::Or),
        "atomic_xor" => B::Atomic(AtomicOp::Xor),
        "atomic_exchange" => B::Atomic(AtomicOp::Exchange),
        "atomic_cas" => B::Atomic(AtomicOp::Cas),
        "tiled_mma" => B::TiledMma,
        "select_mma" => B::SelectMma,
        "mma" => B::Mma,
        "fragment_A" => B::Fragment(Operand::A),
        "fragment_B" => B::Fragment(Operand::B),
        "fragment_C" => B::Fragment(Operand::C),
        "partition_A" => B::Partition(Operand::A),
        "partition_B" => B::Partition(Operand::B),
        "partition_C" => B::Partition(Operand::C),
        "copy" => B::Copy,
        "gather" => B::Gather,
        "recast" => B::Recast,
        "scatter" => B::Scatter,
        "layout" => B::Layout("layout"),
        "modes" => B::Layout("modes"),
        "local_tile" => B::Layout("local_tile"),
        "local_partition" => B::Layout("local_partition"),
        "close" => B::Close,
        _ => {
            return SyncFn::from_name(name)
                .map(B::Sync)
                .or_else(|| Over::ALL.into_iter().find(|o| o.name() == name).map(B::Over))
                .or_else(|| ptoc_layout::ops::find(name).map(|op| B::Layout(op.name)));
        }
    })
}

/// Built-in function names for suggestions; those of layout operations are in `ptoc_layout::ops`.
pub const FUNCTION_NAMES: &[&str] = &[
    "tiles",
    "ceil_div",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "recip",
    "abs",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "tanh",
    "erf",
    "sin",
    "cos",
    "min",
    "max",
    "pow",
    "clamp",
    "select",
    "rowsum",
    "rowmax",
    "rowmin",
    "colsum",
    "colmax",
    "colmin",
    "rowprod",
    "colprod",
    "rowcumsum",
    "rowcumprod",
    "rowcummax",
    "rowcummin",
    "colcumsum",
    "colcumprod",
    "colcummax",
    "colcummin",
    "rowargmax",
    "rowargmin",
    "colargmax",
    "colargmin",
    "packbits",
    "matmul",
    "transpose",
    "iota",
    "bytes",
    "size",
    "rank",
    "col",
    "sum",
    "prod",
    "argmax",
    "argmin",
    "any",
    "all",
    "count",
    "sorted",
    "permutation",
    "close",
    "print",
    "static_assert",
    "assert",
    "atomic_add",
    "atomic_max",
    "atomic_min",
    "atomic_and",
    "atomic_or",
    "atomic_xor",
    "atomic_exchange",
    "atomic_cas",
    "tiled_mma",
    "select_mma",
    "mma",
    "fragment_A",
    "fragment_B",
    "fragment_C",
    "partition_A",
    "partition_B",
    "partition_C",
];

/// A word with a fixed meaning that is no function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// A dtype, `index` aside.
    DType(DType),
    /// `index`
    Index,
    /// `block`
    Block,
    /// A location.
    Loc(Loc),
    /// `inf`
    Inf,
    /// `nan`
    Nan,
    /// `none`
    None,
    /// `EQ`, ... of TCMP.
    Cmp(CmpOp),
    /// `Rint`, ... of TCVT.
    Round(RoundMode),
    /// `Clamp`, ... of MGATHER.
    Oob(Oob),
    /// A choice of an instruction: `Up` of TCI, `P0101` of TGATHER, `Max` of TFILLPAD, ...
    Choice(&'static str),
    /// `X` in a projection.
    Skip,
    /// `ND`, `DN`: PTO's orders of a tile's elements.
    Order(Order),
    /// `view`, as the type of a parameter or a result.
    View,
    /// Known, but of a later version.
    NotYet(&'static str),
}

/// What `u4` and `i4` are where a type is wanted.
pub const NIBBLES: &str = "tiles and tensors of 4-bit dtypes";

/// The word `name`.
pub fn word(name: &str) -> Option<Word> {
    if let Some(d) = DType::from_name(name) {
        return Some(Word::DType(d));
    }
    if let Some(l) = Loc::from_name(name).filter(|l| *l != Loc::Lanes) {
        return Some(Word::Loc(l));
    }
    Some(match name {
        "index" => Word::Index,
        "block" => Word::Block,
        "inf" => Word::Inf,
        "nan" => Word::Nan,
        "none" => Word::None,
        "EQ" => Word::Cmp(CmpOp::Eq),
        "NE" => Word::Cmp(CmpOp::Ne),
        "LT" => Word::Cmp(CmpOp::Lt),
        "LE" => Word::Cmp(CmpOp::Le),
        "GT" => Word::Cmp(CmpOp::Gt),
        "GE" => Word::Cmp(CmpOp::Ge),
        "Rint" => Word::Round(RoundMode::Rint),
        "Round" => Word::Round(RoundMode::Round),
        "Floor" => Word::Round(RoundMode::Floor),
        "Ceil" => Word::Round(RoundMode::Ceil),
        "Trunc" => Word::Round(RoundMode::Trunc),
        "Odd" => Word::Round(RoundMode::Odd),
        "Undefined" => Word::Oob(Oob::Undefined),
        "Clamp" => Word::Oob(Oob::Clamp),
        "Wrap" => Word::Oob(Oob::Wrap),
        "Zero" => Word::Oob(Oob::Zero),
        "view" => Word::View,
        "X" => Word::Skip,
        "ND" => Word::Order(Order::Nd),
        "DN" => Word::Order(Order::Dn),
        "u4" | "i4" => Word::NotYet(NIBBLES),
        _ => Word::Choice(choice(name)?),
    })
}

/// The word of that name with which some instruction of the table lets choose.
fn choice(name: &str) -> Option<&'static str> {
    static CHOICES: LazyLock<FxHashSet<&str>> = LazyLock::new(|| {
        let words = ptoc_isa::TABLE.iter().flat_map(|row| row.operands).flat_map(|o| match o.kind {
            ptoc_isa::OperandKind::Choice(words) => words,
            _ => &[],
        });
        words.map(|(word, _)| *word).chain(["Max", "Min", "Skip", "Relu", "HF32", "TF32"]).collect()
    });
    CHOICES.get(name).copied()
}

/// Words for suggestions.
pub const WORD_NAMES: &[&str] = &["index", "block", "inf", "nan", "none"];

/// Whether the word can be called, as conversions and moves are.
pub fn word_is_called(name: &str) -> bool {
    matches!(word(name), Some(Word::DType(_) | Word::Index | Word::Loc(_)))
}

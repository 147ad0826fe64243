//! Identifiers of C++ for values.

use crate::lexer::Word;
use crate::ops::OPS;
use rustc_hash::{FxHashMap, FxHashSet};

/// Words of C++ that no variable has, and names that the text uses itself.
const RESERVED: &str = "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t \
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue \
    decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if \
    inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public \
    register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch \
    template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile \
    wchar_t while xor xor_eq \
    main std pto cpu_sim half bfloat16_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t event_t \
    blocks stream options Tile TileType BLayout SLayout PadValue CompactMode GlobalTensor Shape Stride Layout CmpMode \
    RoundMode SaturationMode AtomicType ReluPreMode QuantType MaskPattern Coalesce GatherOOB ScatterOOB \
    ScatterAtomicOp TASSIGN TSUBVIEW TPRINT AICORE get_block_idx get_block_num set_flag wait_flag pipe_barrier \
    floor_divide maximum minimum truncated end_launch trap linux unix \
    NAN INFINITY NULL EOF BUFSIZ RAND_MAX HUGE_VAL HUGE_VALF EXIT_SUCCESS EXIT_FAILURE CHAR_BIT CHAR_MAX CHAR_MIN \
    SCHAR_MAX SCHAR_MIN UCHAR_MAX SHRT_MAX SHRT_MIN USHRT_MAX INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX \
    SEEK_SET SEEK_CUR SEEK_END FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON M_PI M_E SIZE_MAX PTRDIFF_MAX \
    stdin stdout stderr errno assert offsetof signbit isnan isinf isfinite isnormal fpclassify";

/// The identifier of each value.
pub(super) struct Identifiers {
    given: FxHashMap<Word, String>,
    taken: FxHashSet<String>,
}

impl Identifiers {
    /// No names but `taken` and the reserved ones.
    pub fn new(taken: &[&str]) -> Identifiers {
        let instructions = OPS.iter().filter_map(|op| op.instr.map(|i| i.get().written_name().to_owned()));
        let words = RESERVED.split_whitespace().chain(taken.iter().copied()).map(str::to_owned);
        Identifiers { given: FxHashMap::default(), taken: words.chain(instructions).collect() }
    }

    /// A new identifier for a value, like `wish`.
    pub fn give(&mut self, value: &Word, wish: &str) -> String {
        let name = self.fresh(wish);
        self.given.insert(value.clone(), name.clone());
        name
    }

    /// An identifier of no value.
    pub fn fresh(&mut self, wish: &str) -> String {
        let mut base = crate::write::cleaned(wish);
        // These are the implementation's, or macros of the headers.
        let is_limit =
            base.starts_with(['I', 'U']) && base.contains("INT") && (base.ends_with("_MAX") || base.ends_with("_MIN"));
        let begins = ["_", "PIPE_", "EVENT_ID"].iter().any(|w| base.starts_with(w));
        if begins || is_limit || base.contains("__") {
            base = format!("v{}", base.replace("__", "_"));
        }
        let mut candidate = base.clone();
        let mut n = 1;
        while !self.taken.insert(candidate.clone()) {
            n += 1;
            candidate = format!("{base}_{n}");
        }
        candidate
    }

    /// Calls a value by an expression.
    pub fn set(&mut self, value: Word, text: String) {
        self.given.insert(value, text);
    }

    /// The identifier of a value; its own name if it has none.
    pub fn of(&self, value: &Word) -> String {
        self.given.get(value).cloned().unwrap_or_else(|| value.to_string())
    }
}

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
    floor_divide maximum minimum end_launch trap linux unix";

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
        if base.starts_with('_') || base.starts_with("PIPE_") || base.starts_with("EVENT_ID") || base.contains("__") {
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

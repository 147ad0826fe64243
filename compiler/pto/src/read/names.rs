//! Names of the language for values of the text.

use crate::lexer::Word;
use crate::write::unnumbered;
use ptoc_isa::Loc;
use ptoc_tensor::DType;
use rustc_hash::FxHashSet;

/// Names that are given out, each once.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: FxHashSet<String>,
}

/// Words that are no names.
const KEYWORDS: [&str; 28] = [
    "use", "const", "atom", "fn", "kernel", "program", "type", "where", "ensures", "in", "out", "inout", "let", "var",
    "if", "else", "for", "while", "pipeline", "grid", "return", "break", "continue", "tile", "tensor", "true", "false",
    "_",
];

/// Names that mean something in what is written here.
const USED: [&str; 16] = [
    "index",
    "inf",
    "nan",
    "none",
    "bool",
    "layout",
    "event",
    "barrier",
    "set",
    "wait",
    "print",
    "min",
    "max",
    "ceil_div",
    "col",
    "composition",
];

/// Whether a word is no name of the language.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// Whether no kernel can have the name: it is a word of the language, an instruction, a dtype or a location.
pub(crate) fn is_taken(name: &str) -> bool {
    is_keyword(name)
        || name == "index"
        || ptoc_isa::lookup(name).is_some()
        || DType::from_name(name).is_some()
        || Loc::from_name(name).is_some()
}

impl Names {
    /// A name for the value `%name`: its letters and digits, which differs from all names before. `reserved` says what
    /// else the language knows.
    pub fn give(&mut self, name: &str, reserved: &dyn Fn(&str) -> bool) -> Word {
        self.other_than(name, false, &|name| USED.contains(&name) || reserved(name))
    }

    /// A name for a kernel, which may be that of a function of the language, and not that of an instruction, a dtype or
    /// a location.
    pub fn give_kernel(&mut self, name: &str) -> Word {
        self.other_than(name, true, &is_taken)
    }

    /// As [`Names::give_kernel`], where the kernel's text has words that mean something.
    pub fn give_manual(&mut self, name: &str) -> Word {
        self.other_than(name, true, &|name| USED.contains(&name) || is_taken(name))
    }

    fn other_than(&mut self, name: &str, kernel: bool, reserved: &dyn Fn(&str) -> bool) -> Word {
        let mut base: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
        if base.is_empty() || base.starts_with(|c: char| c.is_ascii_digit()) {
            base.insert(0, 'v');
        }
        // A long name has its beginning: what tells it apart is added.
        base.truncate(64);
        // Where the text is written again, it has its own name.
        if is_keyword(&base) || kernel && is_taken(&base) {
            base.push('_');
        }
        let mut candidate = base.clone();
        let mut n = 1;
        while self.taken.contains(&candidate) || reserved(&candidate) {
            n += 1;
            candidate = format!("{}_{n}", unnumbered(&base));
        }
        self.taken.insert(candidate.clone());
        Word::new(&candidate)
    }
}

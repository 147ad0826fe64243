//! A mutator that knows words, numbers and lines, so that most of what it makes still parses. It works on source text,
//! on both IR texts and on PTO text; every other turn is left to libFuzzer.

use ptoc_isa::{InstrId, Loc};
use ptoc_pto::ops::{Element, Form, OPS};
use ptoc_pto::words::ENUMERATIONS;
use ptoc_tensor::DType;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::OnceLock;

/// splitmix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn word(&mut self, list: &'static str) -> &'static str {
        let n = self.below(list.split_whitespace().count());
        list.split_whitespace().nth(n).unwrap_or_default()
    }

    fn pick<'t, T>(&mut self, list: &'t [T]) -> Option<&'t T> {
        if list.is_empty() { None } else { list.get(self.below(list.len())) }
    }
}

const NUMBERS: &str = "0 1 2 3 5 7 8 15 16 17 31 32 33 63 64 65 100 127 128 255 256 512 1024 4095 4096 65535 65536 \
                       0x1000 0x4000 0x8000 1000000 2147483647 2147483648 4294967295 4294967296 9223372036854775807 \
                       9223372036854775808 18446744073709551615 0.0 1.0 0.5 1e30 1e39 3.4e38 6e4 7e4 1e-45 inf nan -1 \
                       -2 -9223372036854775808";

const OPERATORS: &str = "+ - * / % & | ^ << >> < <= > >= == != && || .. , =";

/// Words that seeds may lack, of the language or of PTO's dialect.
fn vocabulary(text: &str) -> &'static [String] {
    if text.contains("func.func") { dialect() } else { language() }
}

/// Words of operations, attributes and types: a dot is between words.
fn dialect() -> &'static [String] {
    static WORDS: OnceLock<Vec<String>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let mut words = BTreeSet::new();
        for op in OPS.iter() {
            words.extend(op.name.split('.'));
            match &op.form {
                Form::Dps(dps) => words.extend(&dps.attrs),
                Form::Pattern(elements) => of_pattern(elements, &mut words),
                Form::Code => {}
            }
        }
        words.extend(ENUMERATIONS.iter().flat_map(|e| e.words.iter().copied().chain([e.name])));
        let more = "module attributes func private ins outs loc index none i1 i8 i16 i32 i64 ui8 si8 ui16 ui32 f16 \
                    bf16 f32 f8E4M3FN f8E5M2 ptr tensor_view partition_tensor_view tile tile_buf memref address_space \
                    vec mat left right acc bias scaling gm dtype rows cols v_row v_col blayout slayout fractal pad \
                    shape strides offsets sizes valid_row valid_col addr layout nd dn nz step to iter_args else do \
                    before yield true false unit entry target_arch noop arg0 c0 c1 0 x xf32 16x64xf32 1x8xi32";
        words.extend(more.split_whitespace());
        words.into_iter().map(str::to_string).collect()
    })
}

fn of_pattern(elements: &[Element], words: &mut BTreeSet<&'static str>) {
    for element in elements {
        match element {
            Element::Literal(word) | Element::Attr(word) => drop(words.insert(word)),
            Element::Group(elements) => of_pattern(elements, words),
            _ => {}
        }
    }
}

fn language() -> &'static [String] {
    static WORDS: OnceLock<Vec<String>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let mut words: Vec<String> = InstrId::all().map(|i| i.get().name.to_string()).collect();
        words.extend(Loc::ALL.iter().map(|l| l.to_string()));
        words.extend(DType::ALL.iter().map(|d| d.to_string()));
        words.extend(ptoc_names::FUNCTION_NAMES.iter().map(|s| s.to_string()));
        words.extend(ptoc_names::SyncFn::ALL.iter().map(|f| f.name().to_string()));
        words.extend(ptoc_isa::Pipe::ALL.iter().map(|p| p.name().to_string()));
        let more = "index block inf nan none in out inout at over fill tune role let var if else for while pipeline \
                    grid return break continue tile tensor true false first last start end len stages valid raster \
                    swizzle along k m n i j";
        words.extend(more.split_whitespace().map(str::to_string));
        words
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Word,
    Number,
    Other,
}

fn class(token: &str) -> Class {
    match token.chars().next() {
        Some(c) if c.is_ascii_digit() => Class::Number,
        Some(c) if c.is_alphabetic() || c == '_' => Class::Word,
        _ => Class::Other,
    }
}

/// Words, numbers, and single other characters; blanks are left out.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((from, c)) = rest.next() {
        let mut to = from + c.len_utf8();
        if c.is_alphanumeric() || c == '_' {
            let number = c.is_ascii_digit();
            while let Some(&(at, c)) = rest.peek() {
                let fraction = number && c == '.' && text[at + 1..].starts_with(|c: char| c.is_ascii_digit());
                if !(c.is_alphanumeric() || c == '_' || fraction) {
                    break;
                }
                to = at + c.len_utf8();
                rest.next();
            }
        }
        if !c.is_whitespace() {
            all.push(from..to);
        }
    }
    all
}

/// From a token to the end of what it opens, or just the token.
fn group(text: &str, tokens: &[Range<usize>], from: usize) -> usize {
    let mut depth = 0i32;
    for (n, t) in tokens.iter().enumerate().skip(from) {
        match &text[t.clone()] {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth <= 0 {
            return n;
        }
    }
    from
}

fn lines(text: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    text.split_inclusive('\n')
        .map(|l| {
            at += l.len();
            at - l.len()..at
        })
        .collect()
}

fn once(text: &str, rng: &mut Rng) -> Option<String> {
    let tokens = tokens(text);
    let at = rng.below(tokens.len());
    let token = tokens.get(at)?.clone();
    let replace = |range: Range<usize>, by: &str| Some([&text[..range.start], by, &text[range.end..]].concat());
    match rng.below(12) {
        // A token by another one of its class.
        0..=2 => {
            let kind = class(&text[token.clone()]);
            let alike: Vec<_> = tokens.iter().filter(|t| class(&text[(*t).clone()]) == kind).collect();
            let by = rng.pick(&alike)?;
            replace(token, &text[(*by).clone()])
        }
        3..=5 => match class(&text[token.clone()]) {
            Class::Word => replace(token, rng.pick(vocabulary(text))?),
            Class::Number => replace(token, rng.word(NUMBERS)),
            Class::Other => replace(token, &format!(" {} ", rng.word(OPERATORS))),
        },
        // A whole bracketed group, or an operand, by another.
        6 | 7 => {
            let other = rng.below(tokens.len());
            let (end, until) = (group(text, &tokens, at), group(text, &tokens, other));
            let by = &text[tokens[other].start..tokens[until].end];
            replace(token.start..tokens[end].end, by)
        }
        8 => {
            let end = group(text, &tokens, at);
            replace(token.start..tokens[end].end, "")
        }
        // Lines: again elsewhere, away, exchanged.
        9 | 10 => {
            let lines = lines(text);
            let (from, to) = (rng.pick(&lines)?.clone(), rng.pick(&lines)?.start);
            Some([&text[..to], &text[from], &text[to..]].concat())
        }
        _ => {
            let lines = lines(text);
            let (a, b) = (rng.pick(&lines)?.clone(), rng.pick(&lines)?.clone());
            if rng.below(2) == 0 {
                return replace(a, "");
            }
            let (a, b) = if a.start < b.start { (a, b) } else { (b, a) };
            if a == b {
                return None;
            }
            Some([&text[..a.start], &text[b.clone()], &text[a.end..b.start], &text[a], &text[b.end..]].concat())
        }
    }
}

/// For `fuzz_mutator!`.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut rng = Rng(u64::from(seed));
    if rng.below(4) == 0 {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    let mut text = String::from_utf8_lossy(&data[..size]).into_owned();
    for _ in 0..1 + rng.below(3) {
        text = once(&text, &mut rng).unwrap_or(text);
    }
    if text.is_empty() || text.len() > max_size.min(data.len()) {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    data[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}

/// For `fuzz_crossover!`: lines of the second text among those of the first.
pub fn crossover(a: &[u8], b: &[u8], out: &mut [u8], seed: u32) -> usize {
    let mut rng = Rng(u64::from(seed));
    let (a, b) = (String::from_utf8_lossy(a), String::from_utf8_lossy(b));
    let (into, from) = (lines(&a), lines(&b));
    let mut text = a.to_string();
    if let (Some(to), false) = (rng.pick(&into), from.is_empty()) {
        let first = rng.below(from.len());
        let last = (first + rng.below(4)).min(from.len() - 1);
        text.insert_str(to.start, &b[from[first].start..from[last].end]);
    }
    let len = text.len().min(out.len());
    out[..len].copy_from_slice(&text.as_bytes()[..len]);
    len
}

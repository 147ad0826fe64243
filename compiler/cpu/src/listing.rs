//! Machine code as people read it: instructions decoded from the bytes, with the source that each stems from.
//!
//! A [`FunctionListing`] is data: it knows spans, and no file names. [`lines`] and [`print()`] make text of several,
//! given what to say of a span.

mod decode;

use crate::codegen::Made;
use cranelift_codegen::{Final, MachSrcLoc};
use cranelift_module::ModuleDeclarations;
use ptoc_diagnostics::Span;
use rustc_hash::FxHashMap;

/// A function's machine code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionListing {
    /// Name: `launch`, `block`, or a number for what they call.
    pub name: String,
    /// Bytes, constants included.
    pub size: usize,
    /// Instructions in their order, then constants.
    pub lines: Vec<ListingLine>,
}

/// An instruction, or some bytes of constants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListingLine {
    /// Bytes from the function's start.
    pub offset: u32,
    /// What other lines call this place.
    pub label: Option<String>,
    /// The bytes. Of code that is not x86-64's, Cranelift's text stands for all of them, and there are none.
    pub bytes: Vec<u8>,
    /// In Intel's notation.
    pub text: String,
    /// The source: several places, if they share the function.
    pub spans: Vec<Span>,
}

/// From this offset on, instructions stem from this entry of the [`Sources`], or only from the function as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) offset: u32,
    pub(crate) source: Option<u32>,
}

/// Cranelift's source locations as marks.
pub(crate) fn marks(locations: &[MachSrcLoc<Final>]) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    let mut mark = |offset: u32, source: Option<u32>| match marks.last_mut() {
        Some(last) if last.offset == offset => last.source = source,
        _ => marks.push(Mark { offset, source }),
    };
    for at in locations {
        mark(at.start, (!at.loc.is_default()).then(|| at.loc.bits()));
        mark(at.end, None);
    }
    marks
}

/// Where the parts of a function come from.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Sources {
    /// What the function is called for.
    whole: Vec<Span>,
    /// What marks refer to.
    parts: Vec<Vec<Span>>,
}

impl Sources {
    /// Of a function that is called at this place.
    pub(crate) fn at(span: Span) -> Sources {
        Sources { whole: known(span), parts: Vec::new() }
    }

    /// The same with a place for each of its parts.
    pub(crate) fn with_parts(span: Span, parts: &[Span]) -> Sources {
        Sources { whole: known(span), parts: parts.iter().map(|span| known(*span)).collect() }
    }

    /// Adds those of another call of the function.
    pub(crate) fn merge(&mut self, other: &Sources) {
        let pairs = std::iter::once((&mut self.whole, &other.whole)).chain(self.parts.iter_mut().zip(&other.parts));
        for (own, others) in pairs {
            for span in others {
                if !own.contains(span) {
                    own.push(*span);
                }
            }
        }
    }

    fn of(&self, source: Option<u32>) -> &[Span] {
        let part = source.and_then(|n| self.parts.get(n as usize)).filter(|spans| !spans.is_empty());
        part.unwrap_or(&self.whole)
    }
}

fn known(span: Span) -> Vec<Span> {
    if span == Span::default() { Vec::new() } else { vec![span] }
}

/// How statements are numbered for marks.
pub(crate) enum Numbering {
    /// Not at all: nobody wants a listing.
    Off,
    /// By their spans, each when it comes up first.
    Spans(FxHashMap<Span, u32>, Vec<Span>),
    /// By their places in the body of lanes.
    Body,
}

impl Numbering {
    pub(crate) fn spans() -> Numbering {
        Numbering::Spans(FxHashMap::default(), Vec::new())
    }

    /// The number of a statement, if it has a source. It is the n-th of its lanes.
    pub(crate) fn number(&mut self, span: Span, n: usize) -> Option<u32> {
        match self {
            Numbering::Off => None,
            Numbering::Body => u32::try_from(n).ok(),
            Numbering::Spans(..) if span == Span::default() => None,
            Numbering::Spans(numbers, spans) => Some(*numbers.entry(span).or_insert_with(|| {
                spans.push(span);
                spans.len() as u32 - 1
            })),
        }
    }

    pub(crate) fn sources(self) -> Sources {
        match self {
            Numbering::Spans(_, spans) => Sources::with_parts(Span::default(), &spans),
            Numbering::Off | Numbering::Body => Sources::default(),
        }
    }
}

impl FunctionListing {
    pub(crate) fn new(made: &Made, name: String, sources: &Sources, names: &ModuleDeclarations) -> FunctionListing {
        let size = made.bytes.len();
        if let Some(text) = &made.text.disassembly {
            return FunctionListing { name, size, lines: text.lines().map(bare).collect() };
        }
        let mut lines = decode::lines(made, names);
        let code = lines.len() - lines.iter().rev().take_while(|line| line.is_data()).count();
        let mut marks = made.marks.iter().copied().peekable();
        let mut source = None;
        for line in &mut lines[..code] {
            while let Some(mark) = marks.next_if(|mark| mark.offset <= line.offset) {
                source = mark.source;
            }
            line.spans = sources.of(source).to_vec();
        }
        FunctionListing { name, size, lines }
    }
}

/// A line that is text only, and of no place that is known.
fn bare(text: &str) -> ListingLine {
    ListingLine { offset: 0, label: None, bytes: Vec::new(), text: text.to_owned(), spans: Vec::new() }
}

impl ListingLine {
    /// Whether it is a constant.
    pub fn is_data(&self) -> bool {
        self.text.starts_with(decode::DATA)
    }
}

/// A line of text, and the source of what it shows.
pub type Shown<'a> = (String, &'a [Span]);

/// Functions as lines of text. `place` says of a span where it is, and what stands there: a comment above the first
/// instruction of each place.
pub fn lines(functions: &[FunctionListing], place: impl Fn(Span) -> String) -> Vec<Shown<'_>> {
    let mut out: Vec<Shown<'_>> = Vec::new();
    for function in functions {
        if !out.is_empty() {
            out.push((String::new(), &[]));
        }
        out.push((format!("; {}: {} bytes", function.name, function.size), &[]));
        let mut above: Vec<String> = Vec::new();
        for line in &function.lines {
            let mut places: Vec<String> = Vec::new();
            for place in line.spans.iter().map(|span| place(*span)) {
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            if !places.is_empty() && places != above {
                out.extend(places.iter().map(|place| (format!("; {place}"), &line.spans[..])));
                above = places;
            }
            if let Some(label) = &line.label {
                out.push((format!("{label}:"), &line.spans));
            }
            let text = match line.bytes.is_empty() {
                true => format!("  {}", line.text),
                false => format!("  {:4x}:  {}", line.offset, line.text),
            };
            out.push((text, &line.spans));
        }
    }
    out
}

/// The same as one text.
pub fn print(functions: &[FunctionListing], place: impl Fn(Span) -> String) -> String {
    lines(functions, place).into_iter().fold(String::new(), |text, (line, _)| text + line.trim_end() + "\n")
}

//! Test lines: comments of the form `// run: ..`, `// check: ..` and `// trap: ..`, as typed values with a span for
//! every part.
//!
//! ```text
//! // run: linear interp,cpu M=200 N=130 K=100 seed=2 rtol=2e-3 A=a.npy C==c.npy     // a remark
//! // check: linear target=a2a3 BN=512 capacity.Vec=0x1F000 => SA-0352, SA-0352      // a remark
//! // trap: linear PA-1120 M=64 N=64 K=32      // a remark
//! ```

use ptoc_diagnostics::{Diagnostic, FileId, Span, codes};
use std::collections::HashMap;

use crate::ast::{Ident, Name};
use crate::similar::nearest;

/// A test line.
#[derive(Clone, PartialEq, Debug)]
pub enum Directive {
    /// `// run:`
    Run(RunLine),
    /// `// check:`
    Check(Check),
    /// `// trap:`
    Trap(Trap),
}

impl Directive {
    /// What it sets, to be changed.
    pub fn settings_mut(&mut self) -> &mut Settings {
        match self {
            Directive::Run(line) => &mut line.settings,
            Directive::Check(line) => &mut line.settings,
            Directive::Trap(line) => &mut line.settings,
        }
    }

    /// The kernel or program that is meant.
    pub fn kernel(&self) -> &Ident {
        match self {
            Directive::Run(run) => &run.kernel,
            Directive::Check(check) => &check.kernel,
            Directive::Trap(trap) => &trap.kernel,
        }
    }

    /// Target and values.
    pub fn settings(&self) -> &Settings {
        match self {
            Directive::Run(run) => &run.settings,
            Directive::Check(check) => &check.settings,
            Directive::Trap(trap) => &trap.settings,
        }
    }

    /// The line from its first word to its last, without the mark `//` and the remark.
    pub fn span(&self) -> Span {
        match self {
            Directive::Run(run) => run.span,
            Directive::Check(check) => check.span,
            Directive::Trap(trap) => trap.span,
        }
    }
}

/// `// run: kernel backends NAME=VALUE ..`: compute, and compare with `ensures` and between the backends.
#[derive(Clone, PartialEq, Debug)]
pub struct RunLine {
    /// What to run.
    pub kernel: Ident,
    /// On what, by the names of [`BACKENDS`]; at least one, none twice.
    pub backends: Vec<(&'static str, Span)>,
    /// Target, tolerances, and values.
    pub settings: Settings,
    /// `A=file.npy`: the array that an argument gets.
    pub inputs: Vec<Binding>,
    /// `C==file.npy`: the array that an argument must equal afterwards.
    pub expects: Vec<Binding>,
    /// All of it.
    pub span: Span,
}

/// `// check: kernel NAME=VALUE .. => CODE, ..`: analyse, and compare the errors.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// What to check.
    pub kernel: Ident,
    /// Target and values.
    pub settings: Settings,
    /// The codes, or their kinds, that must be reported, one for each error. None: the check must pass.
    pub expected: Vec<Ident>,
    /// All of it.
    pub span: Span,
}

/// `// trap: kernel CODE NAME=VALUE ..`: run on the interpreter, which must stop for this reason.
#[derive(Clone, PartialEq, Debug)]
pub struct Trap {
    /// What to run.
    pub kernel: Ident,
    /// Why it stops: a code or its kind.
    pub code: Ident,
    /// Target and values.
    pub settings: Settings,
    /// `A=file.npy`: the array that an argument gets.
    pub inputs: Vec<Binding>,
    /// All of it.
    pub span: Span,
}

/// The backends that `// run:` lines name. What they are is a matter of the driver, whose registry has these names.
pub const BACKENDS: [&str; 4] = ["interp", "cpu", "gpu", "pim"];

/// What names of settings of the units and of their memory begin with.
const MACHINE: [&str; 2] = ["unit.", "device."];

/// What all kinds of lines can set.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Settings {
    /// `target=a2a3`
    pub target: Option<Ident>,
    /// `seed=7`: of the random inputs.
    pub seed: Option<(u64, Span)>,
    /// `rtol=1e-3`
    pub rtol: Option<(f64, Span)>,
    /// `atol=1e-3`
    pub atol: Option<(f64, Span)>,
    /// `M=200`, `T=f16`, `act=relu`, `ORDER=8:1`: as `-D` has them, in source order. The text is an expression.
    pub params: Vec<Binding>,
    /// `capacity.Vec=0x1F000`: the name is that of the space.
    pub capacities: Vec<Binding>,
    /// `unit.clock=300`, `device.stacks=6`: with the whole name.
    pub machine: Vec<Binding>,
}

/// `NAME=VALUE`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The name.
    pub name: Ident,
    /// The text of the value.
    pub value: Name,
    /// Where the value stands.
    pub value_span: Span,
}

/// Reads the directive in a comment that has a line of its own; `None` if it is an ordinary comment or malformed.
pub(crate) fn read(comment: Span, text: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<Directive> {
    let body = text.strip_prefix("//")?;
    let lead = body.len() - body.trim_start().len();
    let marked = DirectiveKind::ALL.into_iter().find_map(|k| Some((k, body.trim_start().strip_prefix(k.mark())?)));
    let Some((kind, rest)) = marked else {
        diagnostics.extend(misspelt(comment, body));
        return None;
    };
    let offset = comment.start + (2 + lead + kind.mark().len()) as u32;
    let mut reader = Reader { file: comment.file, kind, diagnostics, ok: true, first: HashMap::new() };
    // A remark begins at a word that starts with `//`.
    let remark = words(rest, offset, comment.file).find(|w| w.name.starts_with("//"));
    let rest = remark.map_or(rest, |w| &rest[..(w.span.start - offset) as usize]);
    let end = offset + rest.trim_end().len() as u32;
    let span = Span::new(comment.file, comment.start + (2 + lead) as u32, end);
    reader.line(rest, offset, span)
}

/// A comment that is a test line but for its mark: the word is nearly one, or lacks the colon, and what follows is a
/// kernel with backends or settings.
fn misspelt(comment: Span, body: &str) -> Option<Diagnostic> {
    let marks = DirectiveKind::ALL.map(|k| k.mark());
    let mut words = words(body, comment.start + 2, comment.file);
    let (mark, _kernel) = (words.next()?, words.next()?);
    let backends = |word: &str| word.split(',').all(|name| BACKENDS.contains(&name));
    let mut settings = words.clone().take_while(|w| !w.name.starts_with("//"));
    let colon = mark.name.ends_with(':');
    let is_line = if colon {
        settings.any(|w| backends(&w.name) || w.name.contains('='))
    } else {
        settings.next().is_some_and(|w| backends(&w.name))
    };
    let meant = nearest(mark.name.trim_end_matches(':'), &marks.map(|m| m.trim_end_matches(':')));
    let meant = meant.filter(|_| is_line)?;
    let message = format!("this comment is no test: its first word is `{}`", mark.name);
    Some(
        Diagnostic::warning(codes::MISSPELT_DIRECTIVE, mark.span, message)
            .with_label(format!("`{meant}:` is meant?"))
            .with_suggestion("make it a test", mark.span, format!("{meant}:")),
    )
}

/// The words of `text`, which starts at byte `offset` of the file.
fn words(text: &str, offset: u32, file: FileId) -> impl Iterator<Item = Ident> + Clone {
    text.split_whitespace().map(move |word| {
        let start = offset + (word.as_ptr() as usize - text.as_ptr() as usize) as u32;
        Ident { name: Name::new(word), span: Span::new(file, start, start + word.len() as u32) }
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DirectiveKind {
    Run,
    Check,
    Trap,
}

impl DirectiveKind {
    const ALL: [DirectiveKind; 3] = [DirectiveKind::Run, DirectiveKind::Check, DirectiveKind::Trap];

    fn mark(self) -> &'static str {
        match self {
            DirectiveKind::Run => "run:",
            DirectiveKind::Check => "check:",
            DirectiveKind::Trap => "trap:",
        }
    }

    fn form(self) -> &'static str {
        match self {
            DirectiveKind::Run => "a run line is `// run: kernel backend,.. NAME=VALUE ..`",
            DirectiveKind::Check => "a check line is `// check: kernel NAME=VALUE .. => CODE, ..`",
            DirectiveKind::Trap => "a trap line is `// trap: kernel CODE NAME=VALUE ..`",
        }
    }
}

/// The lists of a line in which a name stands once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum List {
    Inputs,
    Expects,
    Params,
    Capacities,
    Machine,
}

struct Reader<'a> {
    file: FileId,
    kind: DirectiveKind,
    diagnostics: &'a mut Vec<Diagnostic>,
    ok: bool,
    /// Where in its list each name is.
    first: HashMap<(List, Name), usize>,
}

impl Reader<'_> {
    fn fail(&mut self, diagnostic: Diagnostic) {
        self.ok = false;
        self.diagnostics.push(diagnostic);
    }

    fn malformed(&mut self, span: Span, message: impl Into<String>) {
        self.fail(Diagnostic::error(codes::MALFORMED_DIRECTIVE, span, message).with_note(self.kind.form()));
    }

    fn line(&mut self, rest: &str, offset: u32, span: Span) -> Option<Directive> {
        let arrow = rest.find("=>");
        let (left, right) = arrow.map_or((rest, None), |at| (&rest[..at], Some(at)));
        let mut left = words(left, offset, self.file);
        let Some(kernel) = left.next() else {
            self.malformed(span, "this line does not say which kernel it is about");
            return None;
        };
        if !is_name(&kernel.name) {
            self.malformed(kernel.span, format!("a kernel's name is expected, not `{}`", kernel.name));
        }
        let backends = if self.kind == DirectiveKind::Run { self.backends(&kernel, left.next()) } else { Vec::new() };
        let code = if self.kind == DirectiveKind::Trap { self.code(&kernel, left.next()) } else { None };
        let (mut settings, mut inputs, mut expects) = (Settings::default(), Vec::new(), Vec::new());
        for word in left {
            self.setting(word, &mut settings, &mut inputs, &mut expects);
        }
        let expected = match right {
            Some(at) if self.kind != DirectiveKind::Check => {
                let start = offset + at as u32;
                let message = match self.kind {
                    DirectiveKind::Trap => "the code of a trap stands behind the kernel",
                    _ => "a run line expects arrays (`C==c.npy`), not codes",
                };
                self.malformed(Span::new(self.file, start, start + 2), message);
                Vec::new()
            }
            Some(at) => self.codes(&rest[at + 2..], offset + at as u32 + 2),
            None => Vec::new(),
        };
        if !self.ok {
            return None;
        }
        Some(match self.kind {
            DirectiveKind::Run => Directive::Run(RunLine { kernel, backends, settings, inputs, expects, span }),
            DirectiveKind::Check => Directive::Check(Check { kernel, settings, expected, span }),
            DirectiveKind::Trap => Directive::Trap(Trap { kernel, code: code?, settings, inputs, span }),
        })
    }

    fn code(&mut self, kernel: &Ident, word: Option<Ident>) -> Option<Ident> {
        let Some(word) = word.filter(|w| !w.name.contains('=')) else {
            self.malformed(kernel.span.after(), "the code is missing with which the run ends");
            return None;
        };
        if !is_code(&word.name) {
            self.malformed(word.span, format!("`{}` is no code, as PA-1120 is", word.name));
        }
        Some(word)
    }

    fn backends(&mut self, kernel: &Ident, word: Option<Ident>) -> Vec<(&'static str, Span)> {
        let mut list: Vec<(&'static str, Span)> = Vec::new();
        let Some(word) = word.filter(|w| !w.name.contains('=')) else {
            self.malformed(kernel.span.after(), "the backends are missing: `interp`, `cpu`, `gpu`, or `pim`");
            return list;
        };
        let mut start = word.span.start;
        for part in word.name.split(',') {
            let span = Span::new(self.file, start, start + part.len() as u32);
            start += part.len() as u32 + 1;
            match BACKENDS.into_iter().find(|b| *b == part) {
                Some(b) if list.iter().any(|l| l.0 == b) => self.malformed(span, format!("`{part}` stands here twice")),
                Some(b) => list.push((b, span)),
                None => {
                    let mut d = Diagnostic::error(
                        codes::UNKNOWN_BACKEND,
                        span,
                        format!("`{part}` is no backend: there are `interp`, `cpu`, `gpu`, and `pim`"),
                    );
                    if let Some(near) = crate::similar::nearest(part, &BACKENDS) {
                        d = d.with_fix(format!("write `{near}`"), span, near);
                    }
                    self.fail(d);
                }
            }
        }
        list
    }

    fn setting(&mut self, word: Ident, settings: &mut Settings, inputs: &mut Vec<Binding>, expects: &mut Vec<Binding>) {
        let text = word.name.as_str();
        let Some(at) = text.find('=') else {
            self.malformed(word.span, format!("`{text}` is no setting: write NAME=VALUE, without spaces"));
            return;
        };
        let equals = if text[at..].starts_with("==") { 2 } else { 1 };
        let (name, value) = (&text[..at], &text[at + equals..]);
        let part = |from: usize, len: usize| {
            Span::new(self.file, word.span.start + from as u32, word.span.start + (from + len) as u32)
        };
        let name = Ident { name: Name::new(name), span: part(0, at) };
        let value_span = part(at + equals, value.len());
        let binding = Binding { name, value: Name::new(value), value_span };
        if value.is_empty() {
            self.malformed(word.span, format!("`{}` is set to nothing", binding.name.name));
            return;
        }
        let space = binding.name.name.strip_prefix("capacity.").map(str::to_owned);
        let machine = MACHINE.iter().find_map(|p| binding.name.name.strip_prefix(p));
        if !is_name(space.as_deref().or(machine).unwrap_or(&binding.name.name)) {
            self.malformed(binding.name.span, format!("`{}` cannot be set", binding.name.name));
            return;
        }
        if equals == 2 {
            match self.kind == DirectiveKind::Run && space.is_none() && machine.is_none() {
                true => self.unique(List::Expects, expects, binding),
                false => self.malformed(word.span, "`==` expects the value of an array in a run line"),
            }
            return;
        }
        match binding.name.name.as_str() {
            "target" => {
                let value = Ident { name: binding.value.clone(), span: value_span };
                self.once(&mut settings.target, value, &binding.name);
            }
            "seed" => match value.parse::<u64>() {
                Ok(seed) => self.once(&mut settings.seed, (seed, value_span), &binding.name),
                Err(_) => self.malformed(value_span, format!("a seed is an unsigned integer, not `{value}`")),
            },
            name @ ("rtol" | "atol") => match value.parse::<f64>() {
                Ok(v) if v >= 0.0 => {
                    let slot = if name == "rtol" { &mut settings.rtol } else { &mut settings.atol };
                    self.once(slot, (v, value_span), &binding.name);
                }
                _ => self.malformed(value_span, format!("a tolerance is a number of zero or more, not `{value}`")),
            },
            _ => match space {
                Some(space) => {
                    let at = binding.name.span;
                    let span = Span::new(self.file, at.end - space.len() as u32, at.end);
                    let name = Ident { name: Name::new(space), span };
                    self.unique(List::Capacities, &mut settings.capacities, Binding { name, ..binding });
                }
                None if machine.is_some() => self.unique(List::Machine, &mut settings.machine, binding),
                None if value.ends_with(".npy") && self.kind != DirectiveKind::Check => {
                    self.unique(List::Inputs, inputs, binding)
                }
                None => self.unique(List::Params, &mut settings.params, binding),
            },
        }
    }

    fn once<T>(&mut self, slot: &mut Option<T>, value: T, name: &Ident) {
        if slot.replace(value).is_some() {
            self.malformed(name.span, format!("`{}` is set twice", name.name));
        }
    }

    fn unique(&mut self, what: List, list: &mut Vec<Binding>, binding: Binding) {
        let first = *self.first.entry((what, binding.name.name.clone())).or_insert(list.len());
        match list.get(first) {
            Some(first) => {
                let message = format!("`{}` is set twice", binding.name.name);
                let first = first.name.span;
                self.malformed(binding.name.span, message);
                if let Some(last) = self.diagnostics.pop() {
                    self.diagnostics.push(last.with_secondary(first, "first here"));
                }
            }
            None => list.push(binding),
        }
    }

    fn codes(&mut self, text: &str, offset: u32) -> Vec<Ident> {
        let mut list = Vec::new();
        let mut start = offset;
        for part in text.split(',') {
            let lead = (part.len() - part.trim_start().len()) as u32;
            let word = part.trim();
            let span = Span::new(self.file, start + lead, start + lead + word.len() as u32);
            start += part.len() as u32 + 1;
            if word.is_empty() {
                self.malformed(Span::new(self.file, span.start, span.start), "a code is missing here");
            } else if !is_code(word) {
                self.malformed(span, format!("`{word}` is no code, as SA-0352 is, and no kind, as `capacity` is"));
            } else {
                list.push(Ident { name: Name::new(word), span });
            }
        }
        list
    }
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn is_code(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

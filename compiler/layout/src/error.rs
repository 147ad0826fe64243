//! What is wrong with an operation's operands.

use crate::{Condition, Int};
use std::fmt;

/// Where in an operand: mode numbers from the outermost inwards, `[1, 0]` is mode 0 of mode 1.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Path(pub Vec<usize>);

impl Path {
    /// The path of a sub-mode.
    pub fn then(&self, mode: usize) -> Path {
        let mut modes = self.0.clone();
        modes.push(mode);
        Path(modes)
    }
}

impl fmt::Display for Path {
    /// `mode 1.0`; the whole operand prints as `the layout`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("the layout");
        }
        let modes: Vec<String> = self.0.iter().map(usize::to_string).collect();
        write!(f, "mode {}", modes.join("."))
    }
}

/// The kinds of refusals; each has a diagnostic code of its own above this crate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// Composition: neither of the right operand's stride and the left mode's extent divides the other.
    StrideDivisibility,
    /// Composition: the right operand's extent is no multiple of what fits into a left mode.
    ShapeDivisibility,
    /// The modes overlap: two coordinates have one offset.
    NotInjective,
    /// Not a bijection onto `0..size`.
    NotBijective,
    /// Left inverse or complement: a stride is no multiple of the span of the modes below it.
    StrideOrder,
    /// Upcast, downcast, recast: a stride or extent does not divide by the ratio of widths.
    Width,
    /// Rank, depth or nesting of the operands differ.
    Profile,
    /// Sizes or extents differ.
    Size,
    /// An index outside its extent.
    OutOfRange,
    /// A shape with an extent below 1 (or 0 where that is meant), a swizzle with impossible parameters, ...
    Domain,
    /// A tile does not divide the extent, and this operation needs it to.
    Divisibility,
    /// The operation is not defined for this kind of value.
    Kind,
    /// No matrix instruction has these dtypes.
    NoInstruction,
    /// A matrix instruction has no extent that divides the tile's.
    NoExtent,
    /// Numbers beyond 64 bits.
    Overflow,
    /// Whether a precondition holds depends on symbols: see [`LayoutError::condition`].
    Undecided,
}

/// "1 mode", "2 modes"
pub(crate) fn plural<N: fmt::Display + TryInto<i64> + Copy>(n: N, one: &str, many: &str) -> String {
    let single = n.try_into().is_ok_and(|n| n == 1);
    format!("{n} {}", if single { one } else { many })
}

/// A refusal. `message` is one sentence that has the numbers; together with `op` and `path` it says which operation, in
/// which mode of which argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayoutError {
    /// What is wrong, by kind.
    pub kind: ErrorKind,
    /// The operation as the author called it (`zipped_divide`, not the composition inside it).
    pub op: &'static str,
    /// The argument that is to blame, counted from 0, if it is one.
    pub arg: Option<usize>,
    /// The mode that is to blame.
    pub path: Path,
    /// One sentence with the numbers, lower case, no full stop.
    pub message: String,
    /// What would mend it.
    pub help: Option<String>,
    /// For [`ErrorKind::Undecided`]: if this held, the operation could go on. An elaborator may emit it as a run-time
    /// check, add it to its [`crate::Cx`], and call again.
    pub condition: Option<Condition>,
}

impl LayoutError {
    /// A refusal without further details.
    pub fn new(kind: ErrorKind, op: &'static str, message: impl Into<String>) -> LayoutError {
        LayoutError { kind, op, arg: None, path: Path::default(), message: message.into(), help: None, condition: None }
    }

    /// Blames an argument.
    pub fn in_arg(self, arg: usize) -> LayoutError {
        LayoutError { arg: Some(arg), ..self }
    }

    /// Blames a mode.
    pub fn at(self, path: Path) -> LayoutError {
        LayoutError { path, ..self }
    }

    /// The outer operation's name replaces the inner one's.
    pub fn of(self, op: &'static str) -> LayoutError {
        LayoutError { op, ..self }
    }

    /// Moves the path into mode `mode` of an enclosing layout.
    pub fn within(mut self, mode: usize) -> LayoutError {
        self.path.0.insert(0, mode);
        self
    }

    /// Says what would mend it.
    pub fn with_help(self, help: impl Into<String>) -> LayoutError {
        LayoutError { help: Some(help.into()), ..self }
    }

    /// The condition that would decide it.
    pub fn undecided(op: &'static str, condition: Condition) -> LayoutError {
        let message = format!("whether {condition} is not known here");
        LayoutError { condition: Some(condition), ..LayoutError::new(ErrorKind::Undecided, op, message) }
    }

    /// Two numbers do not fit 64 bits together.
    pub fn overflow(what: &str, a: &Int, b: &Int) -> LayoutError {
        LayoutError::new(ErrorKind::Overflow, "arithmetic", format!("{a} {what} {b} does not fit 64 bits"))
    }
}

impl fmt::Display for LayoutError {
    /// `zipped_divide: mode 1.0: message`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.op)?;
        if !self.path.0.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for LayoutError {}

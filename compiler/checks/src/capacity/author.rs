//! What the repairs of a capacity error ask of the one who has the source.

use ptoc_diagnostics::{Account, Analysis, Budget, Edit, Span};
use ptoc_ir::tile::{Kernel, Stmt};
use ptoc_isa::Target;

/// A static parameter that could be smaller.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// Its value now.
    pub value: i64,
    /// Other values, the best first.
    pub candidates: Vec<i64>,
    /// The literal that is its value: its default in the signature, or the argument of a program's launch.
    pub place: Option<Span>,
    /// A program's launch gives it.
    pub launched: bool,
}

/// A statement of a kernel's source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statement {
    /// With its `;`. Another statement may stand where it begins.
    pub span: Span,
    /// The innermost block around it.
    pub block: Span,
    /// It is the block's value: nothing may follow it.
    pub tail: bool,
}

/// The source behind a kernel. Elaborating it anew is the driver's business; what comes of it is judged here.
pub trait FixContext {
    /// The line of a span, as messages call it.
    fn line(&self, span: Span) -> Option<String>;

    /// The static parameters that are whole numbers.
    fn parameters(&self) -> Vec<Parameter>;

    /// The kernel for a target, with another value of a parameter; `None` if that is wrong for other reasons.
    fn elaborate(&self, change: Option<(&Parameter, i64)>, target: &Target) -> Option<Kernel>;

    /// The edit that gives the pipeline at this place a number of stages; `None` where it is no literal.
    fn stages(&self, pipeline: Span, stages: u32) -> Option<Edit>;

    /// The edit that removes what stands at this place; `None` unless it is a statement of its own.
    fn removal(&self, statement: Span) -> Option<Edit>;

    /// The text at this place.
    fn text(&self, span: Span) -> Option<String>;

    /// The innermost statement of the kernel's own text that contains `span`.
    fn statement(&self, span: Span) -> Option<Statement>;

    /// Whether the value at `value` is the one with which `let` introduces the name at `name`.
    fn introduces(&self, name: Span, value: Span) -> bool;
}

/// Nobody knows the source: repairs are those that the kernel itself shows.
#[derive(Clone, Copy, Debug)]
pub struct NoSource;

impl FixContext for NoSource {
    fn line(&self, _: Span) -> Option<String> {
        None
    }

    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn elaborate(&self, _: Option<(&Parameter, i64)>, _: &Target) -> Option<Kernel> {
        None
    }

    fn stages(&self, _: Span, _: u32) -> Option<Edit> {
        None
    }

    fn removal(&self, _: Span) -> Option<Edit> {
        None
    }

    fn text(&self, _: Span) -> Option<String> {
        None
    }

    fn statement(&self, _: Span) -> Option<Statement> {
        None
    }

    fn introduces(&self, _: Span, _: Span) -> bool {
        false
    }
}

/// An author whom one asks for so many kernels only as the budget lasts.
pub(super) struct Thrifty<'a> {
    author: &'a dyn FixContext,
    account: Account<'a>,
    /// Statements of the kernel, and its tiles.
    size: (usize, usize),
}

/// Steps that a statement takes to be elaborated and checked, and a tile, against each other one, to be placed.
const STATEMENT: usize = 128;

impl<'a> Thrifty<'a> {
    pub(super) fn new(author: &'a dyn FixContext, kernel: &Kernel, budget: &'a Budget) -> Thrifty<'a> {
        fn count(region: &[Stmt]) -> usize {
            region.iter().map(|s| 1 + s.op.regions().map(|r| count(r)).sum::<usize>()).sum()
        }
        let size = (count(&kernel.body), kernel.tiles.len());
        Thrifty { author, account: budget.account(Analysis::Repairs), size }
    }

    /// Takes the steps for one more plan of the kernel's tiles. `None`: there are no more.
    pub(super) fn plans(&self) -> Option<()> {
        let (statements, tiles) = self.size;
        self.account.spend(statements + STATEMENT * tiles).ok()
    }
}

impl FixContext for Thrifty<'_> {
    fn line(&self, span: Span) -> Option<String> {
        self.author.line(span)
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.author.parameters()
    }

    fn elaborate(&self, change: Option<(&Parameter, i64)>, target: &Target) -> Option<Kernel> {
        self.account.spend(STATEMENT * self.size.0).ok()?;
        self.plans()?;
        self.author.elaborate(change, target)
    }

    fn stages(&self, pipeline: Span, stages: u32) -> Option<Edit> {
        self.author.stages(pipeline, stages)
    }

    fn removal(&self, statement: Span) -> Option<Edit> {
        self.author.removal(statement)
    }

    fn text(&self, span: Span) -> Option<String> {
        self.author.text(span)
    }

    fn statement(&self, span: Span) -> Option<Statement> {
        self.author.statement(span)
    }

    fn introduces(&self, name: Span, value: Span) -> bool {
        self.author.introduces(name, value)
    }
}

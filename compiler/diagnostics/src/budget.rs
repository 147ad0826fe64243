//! The steps that the analyses of one check may take together.
//!
//! Most of a check takes as many steps as the text is long. What follows iterations, paths or states can take any
//! number of them: loops around each other, branches behind each other, orders of pipes. Such an analysis spends its
//! steps here, and when they are spent it stops, keeps what it has found, and says that it does not know the rest.
//! Steps are counted and no time is measured, so that a text has the same diagnostics on every machine.
//!
//! A step is what takes about 50 ns: a few entries of a state are copied or compared. What is kept is paid for as well,
//! so that steps bound memory, too.

use crate::{Diagnostic, Span, codes};
use std::cell::{Cell, RefCell};

/// Steps of all analyses of one file.
const FILE: u64 = 40_000_000;
/// Steps of the analyses of one kernel, so that one alone does not spend what others need.
const KERNEL: u64 = FILE / 2;
/// Steps of the searches for faster code of one file, and of one kernel. They have their own: how fast code is depends
/// on nothing that is looked at besides.
const FILE_LOWERING: u64 = 8_000_000;
const KERNEL_LOWERING: u64 = FILE_LOWERING / 2;

thread_local! {
    static WORK: Cell<u64> = const { Cell::new(0) };
}

/// Counts steps of this thread that no budget bounds, because they should be about as many as the text is long:
/// look-ups, comparisons, statements that a pass goes through. Tests hold their number against the size of a source.
pub fn work(steps: usize) {
    WORK.set(WORK.get().wrapping_add(steps as u64));
}

/// The steps of this thread so far, those of budgets included.
pub fn worked() -> u64 {
    WORK.get()
}

/// An analysis that spends steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Analysis {
    /// Compile-time evaluation and inlining.
    Elaboration,
    /// Whether tiles are written before they are read.
    Initialisation,
    /// Which writes a read of tiles may find, byte by byte.
    Bytes,
    /// Whether pipes are in order.
    Hazards,
    /// Which elements blocks share, and which of an output nobody writes.
    Blocks,
    /// Which change of the source would make tiles fit, or order pipes.
    Repairs,
    /// Which statements become faster elsewhere.
    Lowering,
}

impl Analysis {
    /// Every analysis.
    pub const ALL: [Analysis; 7] = [
        Analysis::Elaboration,
        Analysis::Initialisation,
        Analysis::Bytes,
        Analysis::Hazards,
        Analysis::Blocks,
        Analysis::Repairs,
        Analysis::Lowering,
    ];

    /// What stays open where it gives up. Of one that gives up nothing that is said: `None`.
    fn open(self) -> Option<&'static str> {
        match self {
            Analysis::Bytes => Some("what is read is written before, and no tile destroys another one"),
            Analysis::Hazards => Some("every access and every event has its order"),
            Analysis::Blocks => Some("no element is shared by blocks, and every element of an output is written"),
            Analysis::Elaboration | Analysis::Initialisation | Analysis::Repairs | Analysis::Lowering => None,
        }
    }
}

/// The analysis has no steps left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spent;

/// Steps that are left, who has taken which, and who has given up.
#[derive(Debug)]
pub struct Budget {
    left: Cell<u64>,
    lowering: Cell<u64>,
    taken: [Cell<u64>; Analysis::ALL.len()],
    undecided: RefCell<Vec<Analysis>>,
    short: Cell<bool>,
}

impl Default for Budget {
    /// The budget of a file.
    fn default() -> Budget {
        Budget::of(FILE)
    }
}

impl Budget {
    /// So many steps.
    pub fn of(steps: u64) -> Budget {
        Budget {
            left: Cell::new(steps),
            lowering: Cell::new(FILE_LOWERING),
            taken: Default::default(),
            undecided: RefCell::default(),
            short: Cell::new(false),
        }
    }

    /// An analysis that chooses what it does by the steps that are left takes one in so many of them at most.
    pub const PART: u64 = 8;

    /// Most steps that one kernel takes.
    pub const KERNEL: u64 = KERNEL;

    /// What one kernel may take of a file's budget. [`Budget::settle`] takes it off.
    pub fn kernel(&self) -> Budget {
        let own = Budget::of(self.left().min(KERNEL));
        own.lowering.set(self.lowering.get().min(KERNEL_LOWERING));
        own
    }

    /// Takes off what a kernel has taken.
    pub fn settle(&self, kernel: &Budget) {
        self.take(kernel.spent());
        self.lowering.set(self.lowering.get().saturating_sub(kernel.taken(Analysis::Lowering)));
        self.short.set(self.short.get() || kernel.short.get());
        for (sum, taken) in self.taken.iter().zip(&kernel.taken) {
            sum.set(sum.get() + taken.get());
        }
    }

    /// Takes off steps that nobody counts.
    pub fn take(&self, steps: u64) {
        self.left.set(self.left().saturating_sub(steps));
    }

    /// Steps that are left.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Steps that all analyses have taken.
    pub fn spent(&self) -> u64 {
        Analysis::ALL.iter().filter(|a| **a != Analysis::Lowering).map(|a| self.taken(*a)).sum()
    }

    /// Steps that one analysis has taken.
    pub fn taken(&self, analysis: Analysis) -> u64 {
        self.taken[analysis as usize].get()
    }

    /// The steps of one analysis.
    pub fn account(&self, analysis: Analysis) -> Account<'_> {
        Account { budget: self, analysis }
    }

    /// What an analysis takes its steps from.
    fn pot(&self, analysis: Analysis) -> &Cell<u64> {
        if analysis == Analysis::Lowering { &self.lowering } else { &self.left }
    }

    /// Takes steps before they are done.
    pub fn spend(&self, analysis: Analysis, steps: u64) -> Result<(), Spent> {
        let pot = self.pot(analysis);
        let left = pot.get();
        let taken = &self.taken[analysis as usize];
        taken.set(taken.get() + steps.min(left));
        WORK.set(WORK.get().wrapping_add(steps.min(left)));
        pot.set(left.saturating_sub(steps));
        if steps <= left {
            return Ok(());
        }
        self.short.set(self.short.get() || analysis != Analysis::Lowering);
        Err(Spent)
    }

    /// Whether someone got no steps since this was asked last. Then what was found depends on how many there were.
    pub fn was_short(&self) -> bool {
        self.short.take()
    }

    /// Notes that an analysis does not decide all that it is for.
    pub fn give_up(&self, analysis: Analysis) {
        let mut undecided = self.undecided.borrow_mut();
        if !undecided.contains(&analysis) {
            undecided.push(analysis);
        }
    }

    /// Whether some analysis has given up.
    pub fn gave_up(&self) -> bool {
        !self.undecided.borrow().is_empty()
    }

    /// The one warning for all analyses that have given up, of a kernel of that name.
    pub fn warning(&self, kernel: &str, span: Span) -> Option<Diagnostic> {
        let mut undecided = self.undecided.borrow().clone();
        undecided.sort_unstable();
        let open: Vec<&str> = undecided.into_iter().filter_map(Analysis::open).collect();
        let (first, rest) = open.split_first()?;
        let message = format!("not everything in `{kernel}` was checked: following it takes too many steps");
        let mut d = Diagnostic::warning(codes::UNDECIDED, span, message).with_label(format!("not proved: {first}"));
        for more in rest {
            d = d.with_note(format!("nor is it proved that {more}"));
        }
        Some(
            d.with_note(
                "what was found is told, and no test at run time is left out; the interpreter watches every byte and \
                event",
            )
            .with_help("fewer iterations, fewer loops inside of each other, or fewer conditions take fewer steps"),
        )
    }
}

/// What one analysis takes its steps from.
#[derive(Clone, Copy, Debug)]
pub struct Account<'b> {
    budget: &'b Budget,
    analysis: Analysis,
}

impl<'b> Account<'b> {
    /// Takes steps before they are done.
    pub fn spend(self, steps: usize) -> Result<(), Spent> {
        self.budget.spend(self.analysis, steps as u64)
    }

    /// Notes that with more steps something else would be found.
    pub fn fell_short(self) {
        self.budget.short.set(true);
    }

    /// Steps that are left.
    pub fn left(self) -> usize {
        usize::try_from(self.budget.pot(self.analysis).get()).unwrap_or(usize::MAX)
    }

    /// Notes that not all is decided.
    pub fn give_up(self) {
        self.budget.give_up(self.analysis);
    }

    /// The same steps, taken for something else.
    pub fn of(self, analysis: Analysis) -> Account<'b> {
        Account { analysis, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_spent() {
        let file = Budget::of(100);
        let kernel = file.kernel();
        assert_eq!(kernel.spend(Analysis::Bytes, 60), Ok(()));
        assert_eq!(kernel.spend(Analysis::Hazards, 30), Ok(()));
        assert_eq!((kernel.spent(), kernel.left()), (90, 10));
        assert!(kernel.warning("k", Span::default()).is_none());
        assert_eq!(kernel.spend(Analysis::Bytes, 11), Err(Spent));
        assert_eq!((kernel.taken(Analysis::Bytes), kernel.left()), (70, 0));
        file.settle(&kernel);
        assert_eq!((file.left(), file.taken(Analysis::Hazards)), (0, 30));
        assert_eq!(file.kernel().spend(Analysis::Bytes, 1), Err(Spent));
        assert!(file.was_short() && !file.was_short());
    }

    /// Searches for faster code have steps of their own, and see how many of these are left.
    #[test]
    fn accounts_see_their_own_steps() {
        let file = Budget::of(100);
        let account = file.account(Analysis::Lowering);
        assert_eq!((account.left() as u64, file.account(Analysis::Bytes).left()), (FILE_LOWERING, 100));
        assert_eq!(account.spend(FILE_LOWERING as usize), Ok(()));
        assert_eq!((account.left(), file.account(Analysis::Bytes).left()), (0, 100));
    }

    #[test]
    fn there_is_one_warning() {
        let budget = Budget::default();
        for analysis in [Analysis::Hazards, Analysis::Bytes, Analysis::Hazards, Analysis::Repairs] {
            budget.give_up(analysis);
        }
        let d = budget.warning("k", Span::default()).unwrap();
        assert_eq!(d.label, "not proved: what is read is written before, and no tile destroys another one");
        assert_eq!(d.notes.len(), 2);
        // A repair that is not found is no doubt.
        let budget = Budget::default();
        budget.give_up(Analysis::Repairs);
        assert!(budget.gave_up() && budget.warning("k", Span::default()).is_none());
    }
}

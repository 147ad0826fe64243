//! Steps of the proofs and trials of one kernel, which are taken from those of all analyses.

use ptoc_diagnostics::Account;
use std::cell::Cell;

/// Steps of the proofs of a kernel, and how many of an account one is.
const PROOFS: (u64, usize) = (160_000, 10);
/// Steps of all launches of a kernel that are tried, and how many of an account one is.
const TRIALS: (u64, usize) = (4_000_000, 1);
/// Steps of one of them.
const TRIAL: u64 = 1_000_000;

/// Steps that are left.
#[derive(Debug)]
pub(super) struct Steps<'b> {
    left: Cell<u64>,
    account: Account<'b>,
    /// Steps of the account for one of these.
    each: usize,
    /// The account has none left.
    nothing: Cell<bool>,
    /// Something was not looked at.
    skipped: Cell<bool>,
}

impl<'b> Steps<'b> {
    fn new(left: u64, each: usize, account: Account<'b>) -> Steps<'b> {
        Steps { left: Cell::new(left), account, each, nothing: Cell::new(false), skipped: Cell::new(false) }
    }

    pub(super) fn of_proofs(account: Account<'b>) -> Steps<'b> {
        Steps::new(PROOFS.0, PROOFS.1, account)
    }

    pub(super) fn of_trials(account: Account<'b>) -> Steps<'b> {
        Steps::new(TRIALS.0, TRIALS.1, account)
    }

    /// What one launch may take of those for all launches; [`Steps::settle`] takes it off.
    pub(super) fn of_one_trial(&self) -> Steps<'b> {
        Steps::new(self.left.get().min(TRIAL), self.each, self.account)
    }

    /// Takes off what a launch has taken.
    pub(super) fn settle(&self, one: &Steps<'_>) {
        let taken = self.left.get().min(TRIAL) - one.left.get();
        self.left.set(if one.nothing.get() { 0 } else { self.left.get() - taken });
    }

    /// False if they are spent.
    pub(super) fn spend(&self, n: u64) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(n));
        if left <= n {
            return false;
        }
        let paid = self.account.spend(usize::try_from(n).unwrap_or(usize::MAX).saturating_mul(self.each));
        if paid.is_err() {
            self.left.set(0);
            self.nothing.set(true);
        }
        paid.is_ok()
    }

    /// Whether this kernel has spent all the steps that it may take.
    pub(super) fn are_spent(&self) -> bool {
        self.left.get() == 0
    }

    /// Whether a question may be asked. If not, it counts as skipped.
    pub(super) fn begin(&self) -> bool {
        self.skipped.set(self.skipped.get() || self.are_spent());
        !self.are_spent()
    }

    /// Whether the answer to a question counts. Where all analyses together have spent their steps, nobody looked, and
    /// the question counts as skipped.
    pub(super) fn answered(&self) -> bool {
        self.skipped.set(self.skipped.get() || self.nothing.get());
        !self.nothing.get()
    }

    /// Whether a question was skipped.
    pub(super) fn skipped(&self) -> bool {
        self.skipped.get()
    }
}

//! What a walk finds.

use super::order::{Order, Wrong};
use super::state::HazardState;
use super::touch::TouchKind;
use ptoc_isa::Loc;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Ways that are kept for one finding.
const GROUNDS: usize = 4;

/// What is wrong.
#[derive(Clone, Debug)]
pub(super) enum HazardFault {
    /// Two accesses of common bytes without an order; the number of the second one's touch.
    Race { first: TouchKind, second: TouchKind, touch: usize },
    /// A synchronisation.
    Order(Wrong),
    /// A flag that is up at the end.
    LeftUp,
    /// A barrier that waits for bytes at the end: announced and come.
    BytesLeft { announced: Option<i64>, came: Option<i64> },
    /// A barrier has begun a phase, and waits at the end for so many of its arrivals.
    ArrivalsLeft { missing: u32, of: u32 },
    /// More or fewer bytes are said to have come than were moved.
    BytesMoved { said: i64, moved: Vec<i64> },
    /// Which element is meant is not known.
    UnknownElement,
    /// How many bytes, or which parity, is not known.
    UnknownNumber,
    /// Whether as many bytes come as are announced is not known.
    UnknownBytes,
}

impl HazardFault {
    /// Faults of one class at one place are one finding.
    fn class(&self) -> u32 {
        match self {
            HazardFault::Race { first, second, .. } => 100 + 64 * first.number() + second.number(),
            HazardFault::Order(wrong) => match wrong {
                Wrong::Down => 1,
                Wrong::Up(_) => 2,
                Wrong::Unordered(..) => 3,
                Wrong::Stuck { .. } => 4,
                Wrong::OnePhaseEarly(_) => 5,
                Wrong::Overtaken(_) => 6,
                Wrong::MixedPhases(_) => 7,
                Wrong::EarlyArrival(_) => 8,
                Wrong::TooManyBytes(_) => 9,
                Wrong::Unannounced { .. } => 10,
                Wrong::Surplus(_) => 11,
                Wrong::UnknownBytes => 12,
            },
            HazardFault::LeftUp => 20,
            HazardFault::BytesLeft { .. } => 21,
            HazardFault::BytesMoved { .. } => 22,
            HazardFault::ArrivalsLeft { .. } => 26,
            HazardFault::UnknownElement => 23,
            HazardFault::UnknownNumber => 24,
            HazardFault::UnknownBytes => 25,
        }
    }
}

/// What explains a wait that never ends, beside the fault itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    /// Nothing else.
    Plain,
    /// The slot was acquired before, and not committed since.
    Uncommitted,
    /// The slot is acquired while it is filled and not yet waited for.
    Filled,
    /// The slot is waited for once more after it was released.
    Unfilled,
    /// The first use of an element of a barrier, of which the arrivals come later.
    FirstUse,
}

/// Class, site and other site.
pub(super) type Key = (u32, u32, u32);

/// A fault with its witness.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) fault: HazardFault,
    /// There is an execution that shows it, if the way that led here is one. `witness` sees to that.
    pub(super) sure: bool,
    /// Ways that led here.
    pub(super) grounds: Vec<Rc<HazardState>>,
    /// Which bytes are touched is known; what is not is whether control comes here so.
    pub(super) decided: bool,
    pub(super) site: u32,
    /// Iterations of all loops there.
    pub(super) at: Rc<[i64]>,
    /// The other site, and the iterations there.
    pub(super) other: Option<(u32, Rc<[i64]>)>,
    /// The element of an event; of a pair of accesses a flag that is up and would order them.
    pub(super) element: Option<u32>,
    /// The one flag that is up then and that was set behind what should have come before: a wait for it is missing
    /// somewhere.
    pub(super) loose: Option<u32>,
    /// Common bytes.
    pub(super) bytes: Option<(Loc, u64, u64)>,
    pub(super) why: Why,
}

impl Finding {
    pub(super) fn plain(
        fault: HazardFault,
        sure: bool,
        site: usize,
        state: &HazardState,
        element: Option<u32>,
    ) -> Finding {
        Finding {
            fault,
            sure: sure && !state.unsure,
            grounds: Vec::new(),
            decided: true,
            site: site as u32,
            at: state.at.clone(),
            other: None,
            element,
            loose: None,
            bytes: None,
            why: Why::Plain,
        }
    }

    /// Equal ones are told once.
    pub(super) fn key(&self) -> Key {
        (self.fault.class(), self.site, self.other.as_ref().map_or(u32::MAX, |o| o.0))
    }
}

/// All findings, each once, in the order in which they were met.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub(super) all: Vec<Finding>,
    /// Where each is.
    at: FxHashMap<Key, usize>,
}

impl Findings {
    pub(super) fn add(&mut self, mut finding: Finding, state: &HazardState) {
        let ground = || Rc::new(HazardState { order: Order::default(), ..state.clone() });
        let at = self.at.get(&finding.key()).copied();
        match at.and_then(|n| self.all.get_mut(n)) {
            Some(old) if finding.sure && !old.sure => {
                finding.grounds = vec![ground()];
                *old = finding;
            }
            Some(old) if finding.sure && old.grounds.len() < GROUNDS => {
                if old.grounds.iter().all(|g| g.assumed != state.assumed) {
                    old.grounds.push(ground());
                }
            }
            Some(_) => {}
            None => {
                finding.grounds = vec![ground()];
                self.at.insert(finding.key(), self.all.len());
                self.all.push(finding);
            }
        }
    }
}

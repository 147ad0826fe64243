//! Elements of a program's tensor that have a value, as ranges of places: programs write tensors of any size window by
//! window, in hundreds of launches.

use super::{Parts, TensorSource};
use ptoc_diagnostics::{Diagnostic, Span};
use ptoc_layout::Storage;
use rangemap::RangeSet;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Ranges that are told apart, at most.
const MOST_RANGES: usize = 1 << 20;

/// Elements of a tensor that have a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Written {
    /// All of them.
    Whole,
    /// These.
    Some(RangeSet<usize>),
}

/// The elements of a window too; `None` if they are too many to be told apart.
pub(super) fn added(mut elements: RangeSet<usize>, window: &Storage) -> Option<RangeSet<usize>> {
    let mut few = true;
    window.runs(|place, count| {
        few &= elements.len() <= MOST_RANGES;
        if few && count > 0 {
            elements.insert(place..place + count);
        }
    });
    few.then_some(elements)
}

impl Written {
    /// Adds what a launch writes of a tensor of `len` elements. What is too large to be followed counts as whole.
    pub fn with(known: Option<Written>, window: Option<&Storage>, len: u64) -> Written {
        let Some(window) = window else { return Written::Whole };
        let known = match known {
            Some(Written::Whole) => return Written::Whole,
            Some(Written::Some(elements)) => elements,
            None => RangeSet::new(),
        };
        match added(known, window) {
            Some(elements) if elements.gaps(&whole(len)).next().is_some() => Written::Some(elements),
            _ => Written::Whole,
        }
    }

    /// Whether this element has a value.
    pub fn has(&self, element: usize) -> bool {
        match self {
            Written::Whole => true,
            Written::Some(elements) => elements.contains(&element),
        }
    }

    /// What has a value on both of two paths.
    pub fn both(&self, other: &Written) -> Written {
        match (self, other) {
            (Written::Whole, w) | (w, Written::Whole) => w.clone(),
            (Written::Some(a), Written::Some(b)) => Written::Some(a.intersection(b).collect()),
        }
    }

    /// Takes away what is no value any more; `None` if nothing is left.
    pub fn without(known: Option<Written>, window: Option<&Storage>, len: u64) -> Option<Written> {
        let known = known?;
        let window = window?;
        let mut elements = match &known {
            Written::Whole => std::iter::once(whole(len)).filter(|all| !all.is_empty()).collect(),
            Written::Some(elements) => elements.clone(),
        };
        let mut few = true;
        window.runs(|place, count| {
            few &= elements.len() <= MOST_RANGES;
            if few && count > 0 {
                elements.remove(place..place + count);
            }
        });
        if !few {
            return Some(known);
        }
        (!elements.is_empty()).then_some(Written::Some(elements))
    }

    /// The first element of a window, or of a whole tensor of `len` elements, that has no value.
    pub fn lacks(&self, window: Option<&Storage>, len: u64) -> Option<usize> {
        let Written::Some(elements) = self else { return None };
        let gap = |range: Range<usize>| elements.gaps(&range).next().map(|gap| gap.start);
        let Some(window) = window else { return Some(whole(len)).filter(|all| !all.is_empty()).and_then(gap) };
        let mut first = None;
        window.runs(|place, count| {
            if first.is_none() && count > 0 {
                first = gap(place..place + count);
            }
        });
        first
    }
}

/// What has a value on both of two paths.
pub(super) fn both(
    a: &FxHashMap<TensorSource, Written>,
    b: &FxHashMap<TensorSource, Written>,
) -> FxHashMap<TensorSource, Written> {
    a.iter().filter_map(|(source, w)| Some((*source, w.both(b.get(source)?)))).collect()
}

fn whole(len: u64) -> Range<usize> {
    0..usize::try_from(len).unwrap_or(usize::MAX)
}

/// What decides over launches that write elements of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OnSomePaths {
    /// They are launched where this condition holds.
    Then(Span),
    /// They are launched where it does not.
    Else(Span),
    /// They are launched in a loop that may not run at all.
    Loop(Span),
    /// They are launched where the loop or its iteration has not ended here.
    Left(Span),
    /// This window has them, whose place is known when the program runs.
    Moved(Span),
}

impl Parts {
    /// Notes which tensors have elements at the end of a path that they lack where paths have met.
    pub fn note_paths(
        &mut self,
        path: &FxHashMap<TensorSource, Written>,
        met: &FxHashMap<TensorSource, Written>,
        decides: OnSomePaths,
    ) {
        let more = path.iter().filter(|(source, w)| met.get(source) != Some(w)).map(|(source, _)| (*source, decides));
        let more: Vec<_> = more.filter(|m| !self.on_some_paths.contains(m)).collect();
        self.on_some_paths.extend(more);
    }

    /// Notes that a launch writes a window whose place is not known.
    pub fn note_moved(&mut self, source: TensorSource, at: Span) {
        let note = (source, OnSomePaths::Moved(at));
        if !self.on_some_paths.contains(&note) {
            self.on_some_paths.push(note);
        }
    }

    /// Behind a loop that may not run at all, what had a value before it has one.
    pub fn may_not_run(&mut self, before: FxHashMap<TensorSource, Written>, at: Span) {
        let behind = std::mem::replace(&mut self.written, before.clone());
        self.note_paths(&behind, &before, OnSomePaths::Loop(at));
    }

    /// Whether launches write a tensor on some paths.
    pub fn written_on_some(&self, source: TensorSource) -> bool {
        self.on_some_paths.iter().any(|(s, _)| *s == source)
    }

    /// Says on which paths a tensor is written.
    pub fn say_paths(&self, d: Diagnostic, source: TensorSource) -> Diagnostic {
        let paths = self.on_some_paths.iter().filter(|(s, _)| *s == source);
        paths.fold(d, |d, (_, decides)| match *decides {
            OnSomePaths::Then(at) => d.with_secondary(at, "written where this holds"),
            OnSomePaths::Else(at) => d.with_secondary(at, "written where this does not hold"),
            OnSomePaths::Loop(at) => d.with_secondary(at, "written in this loop, which may not run at all"),
            OnSomePaths::Moved(at) => d.with_secondary(at, "which elements this is, is known when the program runs"),
            OnSomePaths::Left(at) => d.with_secondary(at, "written where this has not ended the loop or its iteration"),
        })
    }
}

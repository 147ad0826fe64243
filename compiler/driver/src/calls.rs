//! Which call brought a point of a map into the kernel: functions are inlined, so their lines come once for each call.

use ptoc_analysis::debug::DebugInfo;
use ptoc_diagnostics::Span;
use ptoc_placement::MemoryMap;
use ptoc_placement::map::Origin;
use std::collections::{HashMap, VecDeque};

/// For each point the call that stands in the kernel itself, of a point in a function.
pub(crate) fn of(map: &MemoryMap, debug: &DebugInfo) -> Vec<Option<Span>> {
    // Statements of one span are in the trail in the order in which they stand in the kernel.
    let mut queues: HashMap<Span, VecDeque<u32>> = HashMap::new();
    for &(span, scope) in &debug.trail.statements {
        queues.entry(span).or_default().push_back(scope);
    }
    let mut calls: Vec<Option<Span>> = Vec::with_capacity(map.points.len());
    for (span, origin) in map.points.iter().zip(&map.origins) {
        let scope = match origin {
            Origin::Value(v) => debug.trail.values.get(*v).copied(),
            Origin::Listed => queues.get_mut(span).and_then(VecDeque::pop_front),
            Origin::Other => None,
        };
        calls.push(scope.and_then(|s| outermost(debug, s)));
    }
    // A loop ends where it began.
    for l in &map.loops {
        if let Some(start) = calls.get(l.range.start as usize).copied()
            && let Some(end) = calls.get_mut(l.range.end as usize)
        {
            *end = start;
        }
    }
    calls
}

fn outermost(debug: &DebugInfo, mut scope: u32) -> Option<Span> {
    let mut found = None;
    loop {
        let here = debug.scopes.get(scope as usize)?;
        if let Some((_, span)) = &here.call {
            found = Some(*span);
        }
        if here.parent == scope {
            return found;
        }
        scope = here.parent;
    }
}

//! Inserted synchronisation as the search for hazards sees it: nothing is missing, and nothing can be left out.

use crate::inserted::{parts, remove};
use ptoc_hazards::check;
use ptoc_ir::tile::SyncMode;
use ptoc_opt::sync::insert;
use ptoc_placement::physical;
use ptoc_tests::programs::{files, kernels};
use ptoc_tests_budget::one_in;
use std::collections::BTreeSet;

/// Items that could be left out: the barrier behind a loop, where one in the loop's later iterations orders what the
/// first one wrote.
const SURPLUS: &[&str] = &["tile_arrays.tile sums on a2a3: Barrier(0)"];
/// A kernel whose part has no elements: its instructions touch no byte, and the flags between them order nothing.
const EMPTY: &str = "ragged_parts.tile none_left on ";

/// One in so many flags and barriers is left out; the full budget leaves out each.
const USUAL: usize = 8;

/// Every kernel on every target. Without any one flag (its sets and waits) or barrier there is a hazard. One `set` or
/// `wait` alone is not left out: its partner would never end, or be left over, whatever the flag is good for.
#[test]
fn nothing_is_missing_and_nothing_surplus() {
    let (mut count, mut items) = (0, 0);
    let of = one_in(USUAL);
    let (mut surplus, mut cut) = (Vec::new(), BTreeSet::new());
    for path in files() {
        for k in kernels(&path) {
            if k.placed.kernel.sync != SyncMode::Auto {
                continue;
            }
            let made = insert(physical(&k.placed.kernel, &k.placed.placement, &k.target), &k.target);
            let said = check(&made, &k.target);
            let said: Vec<_> = said.iter().map(|d| d.message.clone()).collect();
            // Loops that data end, and pages that are gathered, are not followed to their end.
            if !said.is_empty() && said.iter().all(|m| m.contains("takes too many steps")) {
                cut.insert(k.placed.kernel.name.clone());
                continue;
            }
            assert_eq!(said, [""; 0], "{}\n{made}", k.name);
            count += 1;
            for part in parts(&made) {
                items += 1;
                if items % of != 0 {
                    continue;
                }
                if check(&remove(&made, part), &k.target).is_empty() {
                    surplus.push(format!("{}: {part:?}", k.name));
                }
            }
        }
    }
    println!("{count} kernels, {items} flags and barriers");
    assert!(count > 200 && items > 1_000, "{count} kernels, {items} items");
    surplus.retain(|s: &String| !SURPLUS.iter().any(|known| s.ends_with(known)) && !s.contains(EMPTY));
    assert_eq!(surplus, [""; 0]);
    assert!(cut.len() <= 8, "{cut:?}");
}

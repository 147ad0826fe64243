//! GeoPIM from source text to results, as a user has it.

mod ledger;
mod reference;
mod rows;
mod settings;

use ptoc_driver::backend::PIM;
use ptoc_driver::defs::Definition;
use ptoc_driver::launch::{CompiledPlan, Plan, RunOptions, RunOutcome};
use ptoc_driver::session::Session;
use ptoc_tensor::Tensor;
use ptoc_tests::programs::{Given, arrays_of};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// `tests/language/..` and `examples/..` by their names.
fn program(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = if name == "sampling.tile" { root.join("../examples") } else { root.join("language") };
    folder.join(name)
}

/// A kernel or program after its run on the simulated units.
struct Ran {
    /// Tensors by argument: inputs as they were, results as they are.
    tensors: HashMap<String, Tensor>,
    /// Sizes, and the static parameters that the caller gave.
    sizes: HashMap<String, i64>,
    outcome: RunOutcome,
}

/// Runs a kernel of a file on target geopim, with random numbers for what is not given.
fn run(file: &str, kernel: &str, definitions: &[(String, String)], given: &Given, seed: u64) -> Ran {
    let list: Vec<Definition> =
        definitions.iter().map(|(n, v)| Definition { name: n.clone(), value: v.clone() }).collect();
    let mut session = Session::new("geopim", &list).expect("built in");
    let unit = session.load(&program(file)).expect("it can be read");
    let entry = unit.entry(Some(kernel), "run").expect("it is there");
    let mut arrays = arrays_of(given);
    let plan = Plan::new(&mut session, &unit, &entry, &arrays, true);
    let said = |session: &Session| session.diagnostics.iter().map(|d| d.message.clone()).collect::<Vec<_>>();
    let plan = plan.unwrap_or_else(|_| panic!("{file} {kernel} {definitions:?}: {:?}", said(&session)));
    let mut tensors = plan.tensors(&mut session, &mut arrays, seed).expect("arrays");
    let compiled = CompiledPlan::new(&mut session, &plan, PIM);
    let compiled = compiled.unwrap_or_else(|_| panic!("{file} {kernel} {definitions:?}: {:?}", said(&session)));
    let outcome = compiled.run(&mut session, &mut tensors, &RunOptions::default(), &mut |_| {}, None);
    let outcome = outcome.unwrap_or_else(|_| panic!("{file} {kernel} {definitions:?}: {:?}", said(&session)));
    let mut sizes: HashMap<String, i64> = plan.dims.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    sizes.extend(definitions.iter().filter_map(|(n, v)| Some((n.clone(), v.parse().ok()?))));
    let names = plan.arguments.iter().map(|a| a.name.to_string());
    Ran { tensors: names.zip(tensors).collect(), sizes, outcome }
}

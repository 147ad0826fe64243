//! What a program launches, as its text says it.

use crate::modules::{ItemId, Modules};
use crate::resolve::each_name_of_block;
use ptoc_syntax::ast::{ItemKind, KernelItem};

/// The kernels and programs that a program names, also through programs that it launches, each once, in the order of
/// the text.
pub fn launched(modules: &Modules, program: ItemId) -> Vec<(ItemId, &KernelItem)> {
    let mut found: Vec<(ItemId, &KernelItem)> = Vec::new();
    let mut open = vec![program];
    while let Some(id) = open.pop() {
        let ItemKind::Program(item) = &modules.item(id).kind else { continue };
        let scope = &modules.get(id.module).scope;
        let mut next = Vec::new();
        each_name_of_block(&item.body, &mut |name| {
            let Some(&callee) = scope.get(name) else { return };
            if callee == program || found.iter().any(|(known, _)| *known == callee) {
                return;
            }
            if let ItemKind::Kernel(k) | ItemKind::Program(k) = &modules.item(callee).kind {
                found.push((callee, k));
                next.push(callee);
            }
        });
        open.extend(next.into_iter().rev());
    }
    found
}

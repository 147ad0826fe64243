//! A text whose values have numbers as MLIR's printer gives them: regions that do not see each other go on from the
//! same number. Arguments keep their names, which a launch goes by.

use ptoc_diagnostics::FileId;
use ptoc_pto::tree::{Item, Region};
use std::collections::HashMap;

/// The text with such names.
pub fn renumbered(text: &str) -> String {
    let mut module = ptoc_pto::parse(FileId(0), text).module;
    for item in &mut module.items {
        let Item::Function(f) = item else { continue };
        let mut numbers = Numbers { names: HashMap::new(), args: 0, values: 0 };
        f.body.iter_mut().for_each(|body| numbers.region(body));
    }
    ptoc_pto::print(&module)
}

#[derive(Clone)]
struct Numbers {
    names: HashMap<String, String>,
    args: u32,
    values: u32,
}

impl Numbers {
    fn arg(&mut self, old: &str) -> String {
        let name = format!("arg{}", self.args);
        self.args += 1;
        self.names.insert(old.to_owned(), name.clone());
        name
    }

    fn value(&mut self, old: &str) -> String {
        let name = self.values.to_string();
        self.values += 1;
        self.names.insert(old.to_owned(), name.clone());
        name
    }

    /// Numbers the values of a block, then those of the regions in it, each from where the block ends.
    fn region(&mut self, region: &mut Region) {
        for arg in &mut region.args {
            let name = self.arg(&arg.name);
            arg.name = name.as_str().into();
        }
        for result in region.ops.iter_mut().flat_map(|op| &mut op.results) {
            let name = self.value(&result.name);
            result.name = name.as_str().into();
        }
        for op in &mut region.ops {
            for operand in &mut op.operands {
                if let Some(name) = self.names.get(operand.value.name.as_str()) {
                    operand.value.name = name.as_str().into();
                }
            }
            op.regions.iter_mut().for_each(|r| self.clone().region(r));
        }
    }
}

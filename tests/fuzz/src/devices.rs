//! Target files, among them devices by description.

use ptoc_diagnostics::FileId;
use ptoc_isa::{Loc, Target};

/// The text of a file, by itself and on the base of each target that has one.
pub fn devices(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for base in ["", "base = \"hbm-pim\"\n", "base = \"geopim\"\n"] {
        let text = format!("{base}{text}");
        match Target::parse(FileId(0), &text) {
            Ok(target) => {
                assert!(!target.name.is_empty());
                assert!(target.unit.is_none() || target.device.is_some());
                // The host beside units has Vec, and none of their stores.
                let host = target.host();
                assert!(host.unit.is_none() && Loc::UNIT.into_iter().all(|l| target.unit.is_none() || !host.knows(l)));
            }
            Err(errors) => {
                assert!(!errors.is_empty());
                for e in errors {
                    assert!(!e.message.is_empty() && e.span.is_some_and(|s| text.get(s.range()).is_some()), "{e:?}");
                }
            }
        }
    }
}

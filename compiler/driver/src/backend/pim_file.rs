//! The DRAM of a target file: its table `[dram]`, which is a configuration as `ptoc dram` takes it.

use crate::devices::place;
use ptoc_diagnostics::{Diagnostic, FileId, Span, codes};
use ptoc_pim_sim::dram::Config;
use ptoc_pim_sim::energy::Model;
use ptoc_pim_sim::located::InputError;

/// The DRAM that the table describes, or every mistake in it.
pub(super) fn dram(file: FileId, text: &str, name: &str) -> Result<Config, Vec<Diagnostic>> {
    let refused = |errors: Vec<InputError>| errors.iter().map(|e| located_at(file, e)).collect::<Vec<_>>();
    let loaded = Config::in_table(name, text, "dram").map_err(refused)?;
    if !loaded.warnings.is_empty() {
        // What nothing reads is a mistake in a description that is to be relied on.
        return Err(refused(loaded.warnings));
    }
    if let Err(e) = Model::of(&loaded.config) {
        let place = place(file, text, &["dram", "energy", &e.key]);
        let message = format!("`dram.energy.{}`: {}", e.key, e.message);
        let d = Diagnostic::error(codes::DRAM_ENERGY, place, message);
        return Err(vec![d.with_help("give each current as the data sheet has it, in mA; zeros count no energy")]);
    }
    Ok(loaded.config)
}

fn located_at(file: FileId, e: &InputError) -> Diagnostic {
    // Texts are at most 4 GiB.
    let span = Span::new(file, e.bytes.start as u32, e.bytes.end as u32);
    let path = if e.path.is_empty() { String::new() } else { format!("`dram.{}`: ", e.path) };
    let d = Diagnostic::error(codes::DRAM_CONFIG, span, format!("{path}{}", e.message));
    if e.help.is_empty() { d } else { d.with_help(e.help.clone()) }
}

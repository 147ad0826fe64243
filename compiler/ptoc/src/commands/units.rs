//! What commands show of runs on units in memory: timeline, page, report. Without the feature `pim` there are no such
//! runs.

pub(super) use shown::{page, report, timeline};

#[cfg(feature = "pim")]
mod shown {
    use ptoc_diagnostics::{Diagnostic, SourceMap};
    use ptoc_driver::backend::pim::Simulated;
    use ptoc_trace::Trace;

    /// The timeline.
    pub fn timeline(simulated: &Simulated) -> Result<Trace, Box<Diagnostic>> {
        simulated.timeline.clone().map_err(Box::new)
    }

    /// The page of `--html`, with the files that the launches name.
    pub fn page(title: &str, simulated: &Simulated, sources: &SourceMap) -> String {
        let mut texts: Vec<(&str, &str)> = Vec::new();
        for name in &simulated.report.files {
            if let Some(text) = sources.find(name).map(|file| sources.text(file))
                && texts.iter().all(|(other, _)| other != name)
            {
                texts.push((name, text));
            }
        }
        ptoc_views::sim::page(title, &[(&simulated.name, &simulated.report)], &texts)
    }

    /// Where the time and the energy went, as text.
    pub fn report(simulated: &Simulated) -> String {
        ptoc_views::sim::report::text(&simulated.name, &simulated.report)
    }
}

#[cfg(not(feature = "pim"))]
mod shown {
    use ptoc_diagnostics::{Diagnostic, SourceMap};
    use ptoc_driver::backend::pim::Simulated;
    use ptoc_trace::Trace;

    pub fn timeline(simulated: &Simulated) -> Result<Trace, Box<Diagnostic>> {
        match *simulated {}
    }

    pub fn page(_: &str, simulated: &Simulated, _: &SourceMap) -> String {
        match *simulated {}
    }

    pub fn report(simulated: &Simulated) -> String {
        match *simulated {}
    }
}

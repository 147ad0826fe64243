//! Where operations of a text stem from, as they say it: `loc("softmax.tile":12:5)`.

use crate::attr::Source;
use crate::tree::{Op, Region};
use ptoc_diagnostics::{FileId, Span};

/// The places that operations of a text name.
#[derive(Debug, Default)]
pub struct Origins {
    /// Operations and functions with a place: where each begins and ends in the text, by its beginning. One that is in
    /// another stands behind it.
    found: Vec<(Span, Source)>,
}

impl Origins {
    /// Of a text; nothing of one that is wrong.
    pub fn of(file: FileId, text: &str) -> Origins {
        let parsed = crate::parse(file, text);
        let mut origins = Origins::default();
        if parsed.diagnostics.is_empty() {
            for f in parsed.module.functions() {
                origins.add(f.span, f.source.as_ref());
                if let Some(body) = &f.body {
                    origins.region(body);
                    // An argument has no place of its own: the views of it stem from where it was declared.
                    for param in &f.params {
                        let views = |op: &&Op| op.row.name == "pto.make_tensor_view";
                        let of = |op: &&Op| op.operand("ptr").is_some_and(|o| o.value.name == param.name);
                        let view = body.ops.iter().filter(views).find(of);
                        origins.add(param.span, view.and_then(|op| op.source.as_ref()));
                    }
                }
            }
        }
        origins.found.sort_by_key(|(span, _)| (span.start, std::cmp::Reverse(span.end)));
        origins
    }

    fn add(&mut self, span: Span, source: Option<&Source>) {
        self.found.extend(source.map(|source| (span, source.clone())));
    }

    fn region(&mut self, region: &Region) {
        for op in &region.ops {
            self.add(op.span, op.source.as_ref());
            op.regions.iter().for_each(|r| self.region(r));
        }
    }

    /// What the innermost operation around a place of the text says.
    pub fn at(&self, span: Span) -> Option<&Source> {
        let before = self.found.partition_point(|(own, _)| own.start <= span.start);
        let around = |own: &Span| own.file == span.file && own.end >= span.end;
        self.found[..before].iter().rev().find(|(own, _)| around(own)).map(|(_, source)| source)
    }
}

//! Links in a text: imported modules, and the arrays of test lines.

use crate::failure::{Failure, read};
use crate::reply::{Reply, result};
use crate::world::{World, path};
use lsp_types::{DocumentLink, DocumentSymbolParams, Uri};
use ptoc_diagnostics::Span;
use ptoc_syntax::Directive;
use ptoc_syntax::ast::ItemKind;
use serde_json::Value;

/// `textDocument/documentLink`
pub fn links(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: DocumentSymbolParams = read(params)?;
    let context = world.known(&params.text_document.uri)?;
    let loaded = context.loaded();
    let root = loaded.unit.modules.root();
    let mut found = Vec::new();
    let mut link = |span: Span, target: Option<Uri>, tooltip: &str| {
        if let Some(target) = target {
            let (target, tooltip) = (Some(target), Some(tooltip.to_owned()));
            found.push(DocumentLink { range: context.range(span), target, tooltip, data: None });
        }
    };
    for item in &root.ast.items {
        let ItemKind::Use(segments) = &item.kind else { continue };
        let Some((last, modules)) = segments.split_last().filter(|(_, modules)| !modules.is_empty()) else { continue };
        let Some((_, id)) = root.imports.iter().find(|(name, _)| name.span == last.span) else { continue };
        let file = loaded.unit.modules.get(id.module).file;
        let span = modules[0].span.to(modules[modules.len() - 1].span);
        link(span, context.world.uri_of(loaded, file), "open the module");
    }
    // Arrays are looked for beside the file.
    let here = path(context.uri);
    for directive in &root.directives {
        let arrays = match directive {
            Directive::Run(run) => run.inputs.iter().chain(&run.expects).collect(),
            Directive::Trap(trap) => trap.inputs.iter().collect(),
            Directive::Check(_) => Vec::new(),
        };
        for array in arrays {
            let file = here.parent().map(|p| p.join(array.value.as_str())).filter(|p| p.is_file());
            link(array.value_span, file.and_then(|p| Uri::from_file_path(p).ok()), "open the array");
        }
    }
    result(found)
}

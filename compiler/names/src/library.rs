//! Items of the standard library by name, and where a text imports one more.

use crate::modules::{is_private, item_name};
use ptoc_diagnostics::FileId;
use ptoc_syntax::ast::{File, ItemKind};
use std::sync::LazyLock;

/// An item that can be imported.
#[derive(Debug)]
pub struct Exported {
    /// `std::act`
    pub module: String,
    /// The name.
    pub name: String,
    /// It is a function.
    pub function: bool,
    /// It is a function or a kernel, which can be called.
    pub callable: bool,
    /// The first line of its documentation.
    pub doc: String,
}

/// The standard library's items, in the order of its modules and their texts.
pub fn library() -> &'static [Exported] {
    static LIBRARY: LazyLock<Vec<Exported>> = LazyLock::new(|| {
        let modules = ptoc_stdlib::MODULES.iter();
        modules.flat_map(|(at, _, text)| exported(&format!("std::{}", at.join("::")), text)).collect()
    });
    &LIBRARY
}

/// The items of a module's text that others can import.
pub fn exported(module: &str, text: &str) -> Vec<Exported> {
    let items = ptoc_syntax::parse(FileId(0), text).file.items;
    let public = items.iter().filter(|item| item_name(item).is_some_and(|n| !is_private(&n.name)));
    let items = public.filter_map(|item| {
        Some(Exported {
            module: module.to_owned(),
            name: item_name(item)?.name.to_string(),
            function: matches!(item.kind, ItemKind::Fn(_)),
            callable: matches!(item.kind, ItemKind::Fn(_) | ItemKind::Kernel(_) | ItemKind::Program(_)),
            doc: item.docs.lines().next().unwrap_or_default().to_owned(),
        })
    });
    items.collect()
}

/// Where one more `use` goes: behind the last one, else behind the comments about the file that it begins with.
#[derive(Clone, Copy, Debug, Default)]
pub struct UsePlace {
    /// Byte of the text.
    pub at: u32,
    before: &'static str,
    after: &'static str,
}

impl UsePlace {
    /// The place in `text`, whose tree is `file`.
    pub fn of(file: &File, text: &str) -> UsePlace {
        let last = file.items.iter().rfind(|item| matches!(item.kind, ItemKind::Use(_)));
        if let Some(item) = last {
            return UsePlace { at: item.span.end, before: "\n", after: "" };
        }
        // The documentation of an item is the item's.
        let comment = |line: &str| line.starts_with("//") && !line.starts_with("///");
        let (mut at, mut last, mut end) = (0, None, None);
        for line in text.split_inclusive('\n') {
            if line.trim().is_empty() {
                // What stands directly before an item may be about it; what a blank line follows is about the file.
                end = last;
            } else if comment(line) {
                last = Some(at + line.trim_end().len());
                end = if line.starts_with("//!") { last } else { end };
            } else {
                break;
            }
            at += line.len();
        }
        match end {
            None => UsePlace { at: 0, before: "", after: "\n\n" },
            Some(end) => {
                let next = text[end..].split('\n').nth(1).unwrap_or_default();
                UsePlace { at: end as u32, before: "\n\n", after: if next.trim().is_empty() { "" } else { "\n" } }
            }
        }
    }

    /// The text to insert there.
    pub fn text(&self, path: &str) -> String {
        format!("{}use {path};{}", self.before, self.after)
    }
}

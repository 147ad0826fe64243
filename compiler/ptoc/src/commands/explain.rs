//! `ptoc explain`

use super::show;
use crate::args::{ExplainArgs, MessageFormat};
use crate::io::{Io, list};
use crate::{DONE, WRONG_CALL};
use ptoc_diagnostics::{Code, Diagnostic, codes};
use ptoc_isa::{Instr, Lookup, OperandKind, Role, Target};
use std::fmt::Write as _;

/// Prints the page of a code, the entry of an instruction, or the list of codes.
pub fn explain(args: &ExplainArgs, io: &mut Io<'_>) -> u8 {
    let Some(word) = &args.code else {
        let width = Code::all().iter().map(|c| c.code.as_str().len()).max().unwrap_or(0);
        let lines = Code::all().iter().map(|c| format!("{:width$}  {}\n", c.code.as_str(), c.title));
        io.print(&lines.collect::<String>());
        return DONE;
    };
    match page(word) {
        Ok(page) => {
            io.print(&page);
            DONE
        }
        Err(d) => {
            show(*d, io, MessageFormat::Human);
            WRONG_CALL
        }
    }
}

/// The page of a code or an instruction.
pub fn page(word: &str) -> Result<String, Box<Diagnostic>> {
    let unknown = match ptoc_diagnostics::explain(word) {
        Ok(page) => return Ok(format!("{}\n", page.trim_end_matches('\n'))),
        Err(unknown) => unknown,
    };
    let upper = word.trim().to_ascii_uppercase();
    let sync = ptoc_analysis::SyncFn::ALL.into_iter().find(|f| f.name().eq_ignore_ascii_case(&upper));
    if let Some(f) = sync {
        let (usage, doc) = f.reference();
        let usage = usage.join("\n    ");
        return Ok(format!(
            "# {}\n\n{doc}\n\n    {usage}\n\nIn `#[sync(manual)]` kernels; see spec/pipes.md.\n",
            f.name()
        ));
    }
    let mut d =
        Diagnostic::global(codes::UNKNOWN_CODE, format!("`{}` is no diagnostic code and no instruction", word.trim()));
    match ptoc_isa::find(&upper) {
        Lookup::Found(id) => return Ok(instruction(id.get())),
        Lookup::NotYet(name) => {
            return Ok(format!("# {name}\n\nAn instruction of PTO that ptoc does not have yet.\n"));
        }
        Lookup::Unknown { nearest } => {
            let mut near: Vec<&str> = unknown.suggestion.into_iter().collect();
            near.extend(nearest.into_iter().take(3));
            if !near.is_empty() {
                d = d.with_help(format!("the nearest are {}", list(near)));
            }
        }
    }
    Err(Box::new(d.with_help("`ptoc explain --list` lists the codes")))
}

/// The reference entry of an instruction, from the table.
fn instruction(i: &Instr) -> String {
    let mut out = format!("# {}\n\n{}\n\n    {}\n\n", i.usage(), i.doc, i.formula());
    for o in i.written() {
        let kind = match o.kind {
            OperandKind::Tile(at) if at.len() == ptoc_isa::Loc::ALL.len() => "tile in any location".to_owned(),
            OperandKind::Tile(at) => {
                let at: Vec<&str> = at.iter().map(|l| l.name()).collect();
                format!("tile in {}", at.join(" or "))
            }
            OperandKind::View => "window of a tensor".to_owned(),
            OperandKind::Scalar(None) => "scalar".to_owned(),
            OperandKind::Scalar(Some(d)) => format!("scalar of {d}"),
            OperandKind::Address => "byte address".to_owned(),
        };
        let role = match o.role {
            Role::Dst => "written",
            Role::Src => "read",
        };
        let _ = writeln!(out, "* `{}`: {kind}, {role}", o.name);
    }
    for m in i.modes {
        let words: Vec<String> = m.words.iter().map(|w| format!("`{w}`")).collect();
        let _ = writeln!(out, "* {}: {}", words.join(" "), m.doc);
    }
    out.push('\n');
    for target in Target::all() {
        let Some(dtypes) = ptoc_isa::allowed_dtypes(target, i) else { continue };
        let names: Vec<&str> = dtypes.iter().map(|d| d.name()).collect();
        let names = if names.is_empty() { "not there".to_owned() } else { names.join(" ") };
        let _ = writeln!(out, "    {:<10} {names}", target.name);
    }
    let _ = writeln!(out, "\nSource: {}", i.source);
    out
}

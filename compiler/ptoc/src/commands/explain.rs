//! `ptoc explain`

use super::show;
use crate::args::{ExplainArgs, MessageFormat};
use crate::io::{Io, list};
use crate::{DONE, WRONG_CALL, pto_ids};
use ptoc_diagnostics::{Code, Diagnostic, codes};
use ptoc_isa::{Lookup, Otherwise};

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
        Ok(page) => {
            // What PTO calls it.
            let code = Code::all().iter().find(|c| std::ptr::eq(c.page, page));
            let ids = code.map_or(String::new(), |c| pto_ids::identifiers(c.code.as_str()));
            return Ok(format!("{}\n{ids}", page.trim_end_matches('\n')));
        }
        Err(unknown) => unknown,
    };
    // As PTO's assembler writes an instruction: `pto.tadd`.
    let name = word.trim();
    let name = name.strip_prefix("pto.").unwrap_or(name);
    let upper = name.to_ascii_uppercase();
    let sync = ptoc_analysis::SyncFn::ALL.into_iter().find(|f| f.name().eq_ignore_ascii_case(&upper));
    if let Some(f) = sync {
        let (usage, doc) = f.reference();
        let usage = usage.join("\n    ");
        return Ok(format!(
            "# {}\n\n{doc}\n\n    {usage}\n\nIn `#[sync(manual)]` kernels; see spec/pipes.md.\n",
            f.name()
        ));
    }
    if let Some(page) = pto_ids::page(&upper) {
        return Ok(page);
    }
    let mut d =
        Diagnostic::global(codes::UNKNOWN_CODE, format!("`{}` is no diagnostic code and no instruction", word.trim()));
    match ptoc_isa::find(&upper) {
        Lookup::Found(id) => {
            let pages = ptoc_isa::overloads(id).map(|id| ptoc_isa::instruction_text(id.get()));
            return Ok(pages.collect::<Vec<_>>().join("\n"));
        }
        Lookup::NotYet(name) => {
            let what = match ptoc_isa::otherwise(name) {
                Some(Otherwise::As(how)) => format!("An instruction of PTO. In ptoc it is {how}."),
                Some(Otherwise::LeftOut(why)) => {
                    format!("An instruction of PTO that is not part of the language: {why}.")
                }
                None => "An instruction of PTO that ptoc does not have yet.".into(),
            };
            return Ok(format!("# {name}\n\n{what}\n"));
        }
        // Methods of PTO's tiles, types, and other spellings, which no table of instructions has.
        Lookup::Unknown { .. } if let Some(other) = ptoc_isa::otherwise(&upper) => {
            let what = match other {
                Otherwise::As(how) => format!("A name of PTO. In ptoc it is {how}."),
                Otherwise::LeftOut(why) => format!("A name of PTO that is not part of the language: {why}."),
            };
            return Ok(format!("# {name}\n\n{what}\n"));
        }
        Lookup::Unknown { .. } if let Some(page) = word_page(name) => return Ok(page),
        Lookup::Unknown { .. } if pto_ids::beyond(&upper).is_some() => {
            d = d.with_help(pto_ids::beyond(&upper).unwrap_or_default());
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

/// What is written behind the operands of instructions, here or in PTO's form.
fn word_page(word: &str) -> Option<String> {
    let of = ptoc_isa::instructions_with(word);
    let out = ptoc_isa::left_out_as(word);
    if of.is_empty() && out.is_empty() {
        return None;
    }
    let mut page = format!("# {word}\n");
    if let Some(first) = of.first() {
        let said = list(of.iter().copied());
        page.push_str(&format!(
            "\nIt is written behind the operands of {said}. `ptoc explain {first}` has the forms.\n"
        ));
    }
    for part in out {
        page.push_str(&format!(
            "\nOf PTO's {}, this is left out: {}: {}.\n",
            list(part.of.iter().copied()),
            part.what,
            part.why
        ));
    }
    Some(page)
}

//! Pages that explain a word: a code, an instruction, a word of the language or of PTO.

use crate::pto_ids;
use ptoc_diagnostics::{Code, Diagnostic, codes, list};
use ptoc_isa::{Loc, NameLookup, Otherwise, Pipe, Target};
use ptoc_tensor::DType;

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
    // As its C++ writes a word: `CmpMode::EQ`.
    let name = name.rsplit("::").next().unwrap_or(name);
    let upper = name.to_ascii_uppercase();
    let sync = ptoc_names::SyncFn::ALL.into_iter().find(|f| f.name().eq_ignore_ascii_case(&upper));
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
        NameLookup::Found(id) => {
            let pages = ptoc_isa::overloads(id).map(|id| ptoc_isa::instruction_text(id.get()));
            return Ok(pages.collect::<Vec<_>>().join("\n"));
        }
        NameLookup::NotYet(name) => {
            let what = match ptoc_isa::otherwise(name) {
                Some(Otherwise::As(how)) => format!("An instruction of PTO. In ptoc it is {how}."),
                Some(Otherwise::LeftOut(why)) => {
                    format!("An instruction of PTO that is not part of the language: {why}.")
                }
                None => "An instruction of PTO that ptoc does not have yet.".into(),
            };
            return Ok(format!("# {name}\n\n{what}\n"));
        }
        NameLookup::Unknown { .. } if let Some(page) = word_page(name) => return Ok(page),
        NameLookup::Unknown { .. } if pto_ids::beyond(&upper).is_some() => {
            d = d.with_help(pto_ids::beyond(&upper).unwrap_or_default());
        }
        NameLookup::Unknown { nearest } => {
            let mut near: Vec<&str> = unknown.suggestion.into_iter().collect();
            near.extend(nearest.into_iter().take(3));
            if !near.is_empty() {
                d = d.with_help(format!("the nearest are {}", list(near)));
            }
        }
    }
    Err(Box::new(d.with_help("`ptoc explain --list` lists the codes")))
}

/// A word of the language or of PTO: a location, a dtype, a target, a pipe, a method, a type, what is written behind
/// operands.
fn word_page(word: &str) -> Option<String> {
    let own = own_word(word);
    let other = match ptoc_isa::otherwise(word) {
        Some(Otherwise::As(how)) => Some(format!("A name of PTO. In ptoc it is {how}.")),
        Some(Otherwise::LeftOut(why)) => Some(format!("A name of PTO that is not part of the language: {why}.")),
        None => None,
    };
    let of = ptoc_isa::instructions_with(word);
    let said = of.first().map(|first| {
        let of = list(of.iter().copied());
        format!("It is written behind the operands of {of}. `ptoc explain {first}` has the forms.")
    });
    let out = ptoc_isa::left_out_as(word).into_iter().map(|part| {
        format!("Of PTO's {}, this is left out: {}: {}.", list(part.of.iter().copied()), part.what, part.why)
    });
    let foreign = ptoc_names::spelled_otherwise(word).filter(|_| own.is_none() && other.is_none());
    let foreign = foreign.map(|how| format!("A name of other languages: {how}."));
    let paragraphs: Vec<String> = own.into_iter().chain(foreign).chain(other).chain(said).chain(out).collect();
    (!paragraphs.is_empty()).then(|| format!("# {word}\n\n{}\n", paragraphs.join("\n\n")))
}

/// A location, a dtype, a target or a pipe.
fn own_word(word: &str) -> Option<String> {
    if let Some(loc) = Loc::from_name(word) {
        let sizes = Target::all().iter().filter(|t| t.capacity(loc) > 0).map(|t| {
            let memory = t.memory(loc);
            format!("* {}: {}, {} bytes\n", t.name, memory.name, memory.capacity)
        });
        let sizes: String = sizes.collect();
        return Some(format!("A location of tiles, as in `tile {loc}<..>`. Its memory:\n\n{}", sizes.trim_end()));
    }
    if let Some(dtype) = DType::from_name(word) {
        let what = match dtype {
            DType::Bool => "A dtype: true or false. A tile of it is a mask, and lives in Vec.".to_owned(),
            _ => {
                let kind = match (dtype.is_float(), dtype.is_signed_int()) {
                    (true, _) => "floats",
                    (false, true) => "signed integers",
                    (false, false) => "unsigned integers",
                };
                let on = list(Target::all().iter().filter(|t| t.has_dtype(dtype)).map(|t| t.name.as_str()));
                format!("A dtype: {kind} of {} bits. Targets that have it: {on}.", 8 * dtype.size())
            }
        };
        return Some(what);
    }
    if let Some(target) = Target::all().iter().find(|t| t.name.eq_ignore_ascii_case(word)) {
        let name = &target.name;
        let what = format!(
            "A target: {}. `ptoc targets {name}` lists its memories; spec/targets.md has its rules.",
            target.description
        );
        return Some(what);
    }
    let pipe = Pipe::from_name(word)?.name();
    Some(format!(
        "A pipe of PTO's machine: what it executes keeps its order, and different pipes run at the same time. The page \
         of an \
         instruction says which pipe executes it; how an author orders {pipe} and others is in spec/pipes.md."
    ))
}

//! Names of PTO's that are spelled otherwise here, or left out.

use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_isa as isa;

/// A name of PTO's: an instruction, a method, a type or a word that the language spells otherwise, or has not.
pub fn otherwise(name: &str, span: Span) -> Option<Diagnostic> {
    // In small letters it is most likely a name of the author's.
    let theirs = isa::is_spelled(name) || name.chars().any(char::is_uppercase);
    (theirs && isa::otherwise(name).is_some()).then(|| no_instruction(name, span))
}

/// An instruction of PTO's that the table does not have.
pub(super) fn no_instruction(name: &str, span: Span) -> Diagnostic {
    let told = |message: String, label: &str| Diagnostic::error(codes::NOT_YET, span, message).with_label(label);
    match isa::otherwise(name) {
        Some(isa::Otherwise::As(how)) => told(format!("ptoc has PTO's `{name}` in another form"), "spelled otherwise")
            .with_help(format!("it is {how}")),
        Some(isa::Otherwise::LeftOut(why)) => {
            told(format!("PTO's `{name}` is not part of the language"), "left out").with_note(why)
        }
        None => told(format!("ptoc does not have the PTO instruction `{name}` yet"), "not available"),
    }
}

/// A mode of PTO's as it is written here.
pub fn respelled(word: &str) -> Option<&'static str> {
    Some(match word {
        "AtomicAdd" => "atomic = true",
        "AtomicMax" => "atomic = Max",
        "AtomicMin" => "atomic = Min",
        "ON" => "saturate = true",
        "OFF" => "saturate = false",
        _ => return None,
    })
}

/// A word for what an instruction has in PTO's form, and has not here.
pub fn left_out(id: isa::InstrId, word: &str, span: Span) -> Option<Diagnostic> {
    let name = id.get().written_name();
    let parts: Vec<isa::LeftOut> = isa::left_out(name).filter(|p| p.words.contains(&word)).collect();
    let message = format!("`{word}` of {name} is not part of the language");
    let d = Diagnostic::error(codes::NOT_YET, span, message).with_label("left out");
    match parts.as_slice() {
        [] => None,
        // It is one argument of ours.
        [part] if let Some(ours) = respelled(word) => {
            let message = format!("ptoc has `{word}` of PTO's {name} in another form");
            let d = Diagnostic::error(codes::NOT_YET, span, message).with_label("spelled otherwise");
            Some(d.with_fix(part.why, span, ours))
        }
        // It is there, said another way.
        [part] if part.why.starts_with("it is ") => {
            let message = format!("ptoc has `{word}` of PTO's {name} in another form");
            let d = Diagnostic::error(codes::NOT_YET, span, message).with_label("spelled otherwise");
            Some(d.with_help(part.why))
        }
        [part] => Some(d.with_note(part.why)),
        several => Some(several.iter().fold(d, |d, p| d.with_note(format!("{}: {}", p.what, p.why)))),
    }
}

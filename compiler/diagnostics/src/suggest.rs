//! "Did you mean": the candidate that a misspelled name most likely stands for.

/// The candidate closest to `name`, if it is close: at most one edit in three characters (transpositions count as
/// one), or the same but for letter case and underscores. Equally close ones: the first.
///
/// `name` itself is no suggestion: a caller that offers it knows a reason why it does not do. Names of more than 256
/// characters are compared as wholes: nobody mistypes them.
pub fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    let folded = plain(name);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates.into_iter().filter(|&candidate| candidate != name && !candidate.is_empty()) {
        let other = candidate.chars().count();
        crate::work(other);
        // One- and two-letter names differ from everything by little; only letter case counts for them.
        let allowed = if length < 3 { 0 } else { length.max(other).div_ceil(3).min(4) };
        let distance = match folded.as_ref().is_some_and(|folded| plain(candidate).as_ref() == Some(folded)) {
            true => 0,
            // Each character more is an edit.
            false if length.abs_diff(other) > allowed || length.max(other) > LONGEST => continue,
            false => strsim::damerau_levenshtein(name, candidate),
        };
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Characters of the longest names whose edits are counted: that takes as many steps as both lengths multiplied.
const LONGEST: usize = 256;

/// Small letters and no underscores; `None` of nothing else.
fn plain(text: &str) -> Option<String> {
    let plain: String = text.chars().filter(|&c| c != '_').flat_map(char::to_lowercase).collect();
    (!plain.is_empty()).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::suggest;

    #[test]
    fn typos_are_found() {
        let names = ["TADD", "TMATMUL", "TMATMUL_ACC", "TLOAD", "rowmax", "ceil_div"];
        let check = |name| suggest(name, names);
        assert_eq!(check("TADDD"), Some("TADD"));
        assert_eq!(check("TMATMULACC"), Some("TMATMUL_ACC"));
        assert_eq!(check("tload"), Some("TLOAD"));
        assert_eq!(check("TLAOD"), Some("TLOAD"));
        assert_eq!(check("rowMax"), Some("rowmax"));
        assert_eq!(check("ceildiv"), Some("ceil_div"));
    }

    #[test]
    fn unlike_names_are_not_suggested() {
        let names = ["TADD", "acc", "x", "y", "BM"];
        assert_eq!(suggest("z", names), None);
        assert_eq!(suggest("bm", names), Some("BM"));
        assert_eq!(suggest("BN", names), None);
        assert_eq!(suggest("epilogue", names), None);
        assert_eq!(suggest("", names), None);
        assert_eq!(suggest("_", ["__", "a"]), None);
        assert_eq!(suggest("acc", names), None);
    }

    #[test]
    fn the_closest_and_then_the_first_wins() {
        assert_eq!(suggest("stages", ["stage", "stagess", "stagesss"]), Some("stage"));
        assert_eq!(suggest("colour", ["color", "Colour"]), Some("Colour"));
    }
}

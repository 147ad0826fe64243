//! "Did you mean": the candidate that differs least from what was written.

/// The candidate at the least edit distance from `word`, if it is near enough to be meant.
pub(crate) fn nearest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    // A third of the letters may differ; distances of long garbage are not worth computing.
    if word.len() > 32 {
        return None;
    }
    let limit = (word.chars().count() / 3).max(1);
    let distance = |c: &str| strsim::damerau_levenshtein(&word.to_lowercase(), c);
    let best = candidates.iter().map(|c| (distance(c), *c)).min()?;
    (best.0 <= limit).then_some(best.1)
}

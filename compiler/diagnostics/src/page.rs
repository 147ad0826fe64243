//! The pages behind `ptoc explain`, and the examples on them.

use crate::{Code, suggest};

/// A text that names no code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownCode {
    /// What was asked for.
    pub given: String,
    /// The code or name that may have been meant.
    pub suggestion: Option<&'static str>,
}

/// The page of a code, Markdown. Codes are found in any letter case, with or without their dash (`sa0353`), and by
/// their name (`unexpected_token`).
pub fn explain(text: &str) -> Result<&'static str, UnknownCode> {
    let text = text.trim();
    let plain = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
    let wanted = plain(text);
    let mut all = Code::all().iter();
    if let Some(info) = all.find(|info| plain(info.code.as_str()) == wanted || plain(info.name) == wanted) {
        return Ok(info.page);
    }
    let names = Code::all().iter().flat_map(|info| [info.code.as_str(), info.name]);
    let upper = text.to_uppercase();
    let suggestion = suggest(&upper, names.clone()).or_else(|| suggest(text, names));
    Err(UnknownCode { given: text.to_string(), suggestion })
}

/// A fenced `tile` block of a page: a whole source file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Example<'p> {
    /// The source.
    pub text: &'p str,
    /// Marked `error`: it must be refused (or warned about) with the page's code.
    pub expect_error: bool,
    /// Command-line arguments for `ptoc check`: the info word `target=a5` gives `--target a5`, others of the form
    /// `NAME=VALUE` give `-D NAME=VALUE`.
    pub flags: Vec<&'p str>,
    /// Codes named in the fence after `error`: exactly these must be found.
    pub codes: Vec<&'p str>,
}

/// The examples on a page, in order. Fences are three backquotes at the start of a line; other languages are skipped.
pub fn examples(page: &str) -> Vec<Example<'_>> {
    let mut examples = Vec::new();
    // The open block: its info string, and the offset of its text.
    let mut open: Option<(&str, usize)> = None;
    let mut at = 0;
    for line in page.split_inclusive('\n') {
        if let Some(info) = line.strip_prefix("```") {
            open = match open {
                None => Some((info, at + line.len())),
                Some((info, start)) => {
                    examples.extend(example(info, &page[start..at]));
                    None
                }
            };
        }
        at += line.len();
    }
    examples
}

fn example<'p>(info: &'p str, text: &'p str) -> Option<Example<'p>> {
    let mut words = info.split_whitespace();
    if words.next() != Some("tile") {
        return None;
    }
    let mut example = Example { text, expect_error: false, flags: Vec::new(), codes: Vec::new() };
    for word in words {
        match word.split_once('=') {
            Some(("target", target)) => example.flags.extend(["--target", target]),
            Some(_) => example.flags.extend(["-D", word]),
            None if word == "error" => example.expect_error = true,
            None => example.codes.push(word),
        }
    }
    Some(example)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_extracted() {
        let page = "# E1 x: y\n\nText.\n\n```tile error target=a5 BN=512\nkernel a() {}\n\n```\n\n```text\nno\n```\n\
                    ```tile\nkernel b() {}\n```\n```tile\nnever closed\n";
        let found = examples(page);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].text, "kernel a() {}\n\n");
        assert!(found[0].expect_error);
        assert_eq!(found[0].flags, ["--target", "a5", "-D", "BN=512"]);
        assert_eq!((found[1].text, found[1].expect_error), ("kernel b() {}\n", false));
        assert!(found[1].flags.is_empty());
    }

    #[test]
    fn codes_are_found_or_suggested() {
        assert!(explain("e0001").is_ok_and(|page| page.starts_with("# E0001 ")));
        assert!(explain(" Unexpected_Token ").is_ok_and(|page| page.starts_with("# E0001 ")));
        let error = explain("unexpectedtokn").unwrap_err();
        assert_eq!((error.given.as_str(), error.suggestion), ("unexpectedtokn", Some("unexpected_token")));
        assert_eq!(explain("zzzzzzzzzz").unwrap_err().suggestion, None);
    }

    /// What is wrong with a page's form.
    fn faults(info: &crate::CodeInfo) -> Vec<&'static str> {
        let mut faults = Vec::new();
        let name_is_snake = info
            .name
            .split('_')
            .all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()));
        let ranges = ["E0", "E1", "W0", "W1", "SA-0", "PA-"];
        if !name_is_snake {
            faults.push("the name is not snake_case");
        }
        if !ranges.iter().any(|range| info.code.as_str().starts_with(range)) {
            faults.push("the code is in no known range");
        }
        if info.title.chars().count() >= 90 || info.title.is_empty() {
            faults.push("the title has 0 or more than 89 characters");
        }
        if info.title.ends_with('.') {
            faults.push("the title ends with a full stop");
        }
        // Prose is what lies between the fences, in every second piece.
        let prose = info.page.split("\n```").step_by(2).flat_map(|piece| piece.lines().skip(1));
        if !prose.clone().any(|line| line.len() > 20 && !line.starts_with(['#', '|', '-', '*'])) {
            faults.push("no paragraph explains it");
        }
        if info.page.lines().filter(|line| line.starts_with("```")).count() % 2 == 1 {
            faults.push("a fenced block is not closed");
        }
        for example in examples(info.page) {
            if example.text.trim().is_empty() {
                faults.push("an example is empty");
            }
        }
        faults
    }

    #[test]
    fn every_page_has_the_right_form() {
        let mut wrong = String::new();
        for info in Code::all() {
            faults(info).iter().for_each(|fault| wrong += &format!("{}.md: {fault}\n", info.code));
        }
        assert!(wrong.is_empty(), "\n{wrong}");
    }

    #[test]
    fn names_are_unique_and_errors_of_data_have_pages() {
        let mut names: Vec<_> = Code::all().iter().map(|info| info.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::all().len());
        // ptoc-tensor names its codes as text, because it depends on nothing.
        for number in 701..=713 {
            assert!(Code::find(&format!("E0{number}")).is_some(), "E0{number}");
        }
        let error = ptoc_tensor::npy::read(b"no", None).unwrap_err();
        assert_eq!(error.code(), crate::codes::NOT_NPY.as_str());
    }
}

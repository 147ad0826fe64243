//! Results of tests in JUnit's form, which build servers read.

use crate::page::escape;
use std::fmt::Write as _;

/// How a case went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// As it should.
    Passed,
    /// It was not run, and why.
    Skipped(String),
    /// It was wrong, and why.
    Failed(String),
}

/// A test.
#[derive(Clone, Debug)]
pub struct Case {
    /// The group that it is shown in: a file, or a kernel.
    pub group: String,
    /// Its name in the group.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// How it went.
    pub verdict: Verdict,
}

/// The cases as one suite.
pub fn suite(name: &str, cases: &[Case]) -> String {
    let failures = cases.iter().filter(|c| matches!(c.verdict, Verdict::Failed(_))).count();
    let skipped = cases.iter().filter(|c| matches!(c.verdict, Verdict::Skipped(_))).count();
    let seconds = cases.iter().fold(0.0, |sum, c| sum + c.seconds);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\" time=\"{seconds:.6}\">",
        attribute(name),
        cases.len()
    );
    for case in cases {
        let Case { group, name, seconds, verdict } = case;
        let _ = write!(
            out,
            "  <testcase classname=\"{}\" name=\"{}\" time=\"{seconds:.6}\"",
            attribute(group),
            attribute(name)
        );
        let (word, why) = match verdict {
            Verdict::Passed => {
                out.push_str("/>\n");
                continue;
            }
            Verdict::Skipped(why) => ("skipped", why),
            Verdict::Failed(why) => ("failure", why),
        };
        let _ = writeln!(out, ">\n    <{word} message=\"{}\"/>\n  </testcase>", attribute(why));
    }
    out + "</testsuite>\n"
}

/// A text between quotes: control characters, which XML has not, are spaces.
fn attribute(text: &str) -> String {
    escape(&text.replace(char::is_control, " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_has_its_cases() {
        let case = |name: &str, verdict| Case { group: "a.tile".into(), name: name.into(), seconds: 0.25, verdict };
        let cases = [
            case("run: a", Verdict::Passed),
            case("run: \"b\" <1>\n", Verdict::Failed("a & b".into())),
            case("run: c", Verdict::Skipped("elsewhere".into())),
        ];
        let text = suite("ptoc test", &cases);
        assert!(text.contains("tests=\"3\" failures=\"1\" skipped=\"1\" time=\"0.750000\""), "{text}");
        assert!(text.contains("name=\"run: a\" time=\"0.250000\"/>"), "{text}");
        assert!(text.contains("name=\"run: &quot;b&quot; &lt;1&gt; \""), "{text}");
        assert!(text.contains("<failure message=\"a &amp; b\"/>") && text.contains("<skipped message=\"elsewhere\"/>"));
    }
}

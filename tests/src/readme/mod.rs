//! The code blocks, paragraphs and links of the documents, and the comparison of what blocks print.

mod blocks;
mod prose;

pub use blocks::{Block, Marker, Page, blocks, module, pages};
pub use prose::{Link, Paragraph, anchors, broken_links, links, paragraphs};

/// True if the output matches the expected text. `…` matches any text within a line; a line of `…` matches any lines.
pub fn matches(expected: &str, printed: &str) -> bool {
    let (expected, printed): (Vec<_>, Vec<_>) = (expected.lines().collect(), printed.lines().collect());
    let line = |expected: &&str, printed: &&str| {
        let (expected, printed): (Vec<_>, Vec<_>) = (expected.chars().collect(), printed.chars().collect());
        wildcard(&expected, &printed, |sign| *sign == '…', |a, b| a == b)
    };
    wildcard(&expected, &printed, |line| ["…", "..."].contains(&line.trim()), line)
}

/// Matches two sequences, of which the first may contain wildcards for any number of items of the other.
fn wildcard<T>(
    expected: &[T],
    found: &[T],
    is_any: impl Fn(&T) -> bool + Copy,
    same: impl Fn(&T, &T) -> bool + Copy,
) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((first, rest)) if is_any(first) => {
            (0..=found.len()).any(|skip| wildcard(rest, &found[skip..], is_any, same))
        }
        Some((first, rest)) => {
            found.split_first().is_some_and(|(head, tail)| same(first, head) && wildcard(rest, tail, is_any, same))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_parsed_with_their_output_and_markers() {
        let markdown = "# x\n```sh\nno\n```\n<!-- snippets: store -->\n```sh\none\n\ntwo\n```\n\n```text\n1\n```\nwords\n```text\nnot of one\n```\n### deeper\n<!-- not run: slow -->\n```sh\nx\n```\n*Not run here: R is missing.*\n\n```r\nx\n```\n<!-- snippets: folder -->\n```python\nx = 1\n```\n";
        let found = blocks(markdown);
        let [before, sh, text, slow, r, python] = &found[..] else { panic!("{found:?}") };
        assert_eq!((before.line, before.is_run()), (2, false));
        assert_eq!((sh.line, sh.text.as_str(), sh.prints.as_deref()), (6, "one\n\ntwo\n", Some("1\n")));
        assert_eq!(sh.marker, Some(Marker { line: 5, text: "store".to_owned() }));
        assert!(sh.is_run());
        assert_eq!((text.language.as_str(), text.prints.as_deref()), ("text", None));
        assert_eq!((slow.not_run.as_deref(), slow.is_run()), (Some("slow"), false));
        assert_eq!((r.language.as_str(), r.not_run.as_deref()), ("r", Some("R is missing.")));
        assert_eq!(
            (python.text.as_str(), python.prints.as_deref(), python.not_run.as_deref()),
            ("x = 1\n", None, None)
        );
        assert_eq!(python.marker.as_ref().map(|marker| marker.text.as_str()), Some("folder"));
    }

    #[test]
    fn ellipsis_in_expected_output_matches_anything() {
        assert!(matches("a\nb\n", "a\nb\n"));
        assert!(!matches("a\nb\n", "a\nb\nc\n"));
        assert!(!matches("a\n", "a b\n"));
        assert!(matches("{\"n\":…,\"b\":[…]}\n", "{\"n\":123,\"b\":[]}\n"));
        assert!(!matches("{\"n\":…,\"b\":[…]}\n", "{\"n\":123,\"c\":[]}\n"));
        assert!(matches("a\n…\nz\n", "a\nb\nc\nz\n"));
        assert!(matches("a\n...\n", "a\n"));
        assert!(!matches("a\n…\nz\n", "a\nb\n"));
    }
}

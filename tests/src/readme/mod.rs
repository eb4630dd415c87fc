//! The code blocks of the README, and the comparison of their output.

mod blocks;

pub use blocks::{Block, blocks};

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
    fn blocks_are_parsed_with_their_output() {
        let markdown = "# x\n```sh\nno\n```\n## A\n```sh\none\n\ntwo\n```\n\n```text\n1\n```\nwords\n```text\nnot of one\n```\n### deeper\n```python\nx = 1\n```\n## B\n```sh\nno\n```\n";
        let found = blocks(markdown, "A");
        let [sh, text, python] = &found[..] else { panic!("{found:?}") };
        assert_eq!((sh.line, sh.text.as_str(), sh.prints.as_deref()), (6, "one\n\ntwo\n", Some("1\n")));
        assert_eq!((text.language.as_str(), text.prints.as_deref()), ("text", None));
        assert_eq!(
            (python.language.as_str(), python.text.as_str(), python.prints.as_deref()),
            ("python", "x = 1\n", None)
        );
        assert_eq!(blocks(markdown, "C"), []);
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

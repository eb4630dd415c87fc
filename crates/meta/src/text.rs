//! Text of strangers, made fit for messages.

/// The most characters of a stranger's text that a message repeats.
const MAX_TRUNCATED_CHARS: usize = 80;

/// A text cut to a length that can be shown, with U+FFFD for its control characters.
pub(crate) fn truncated(text: &str) -> String {
    text.chars()
        .take(MAX_TRUNCATED_CHARS)
        .map(|char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char })
        .collect()
}

/// The JSON pointer to a member of what another one points to, its name cut to a length that can be shown.
pub(crate) fn pointer_to(parent: &str, name: &str) -> String {
    format!("{parent}/{}", truncated(name).replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_and_control_characters_are_truncated() {
        assert_eq!(truncated("a\nb\u{7}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(truncated(&"é".repeat(1000)), "é".repeat(80));
    }
}

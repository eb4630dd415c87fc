//! Text of strangers, made fit for messages.

/// The most characters of a stranger's text that a message repeats.
const MAX_SHOWN: usize = 80;

/// A text cut to a length that can be shown, with U+FFFD for its control characters.
pub(crate) fn shown(text: &str) -> String {
    text.chars()
        .take(MAX_SHOWN)
        .map(|char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown() {
        assert_eq!(shown("a\nb\u{7}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(shown(&"é".repeat(1000)), "é".repeat(80));
    }
}

//! Documents with generated sections between markers.

/// A section that cannot be replaced.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkerError {
    /// A marker is missing.
    #[error("the marker {0:?} is missing")]
    Missing(String),
    /// The end marker precedes the start marker.
    #[error("the end of the section {0:?} stands before its beginning")]
    Order(String),
}

/// The text between the markers of a section, without the line breaks next to them.
pub fn section<'a>(document: &'a str, name: &str) -> Result<&'a str, MarkerError> {
    Ok(Parts::of(document, name)?.text.trim_matches('\n'))
}

/// The document with the text between the markers of a section replaced.
pub fn with_section(document: &str, name: &str, text: &str) -> Result<String, MarkerError> {
    let Parts { before, after, .. } = Parts::of(document, name)?;
    let (opening, closing) = markers(name);
    Ok(format!("{before}{opening}\n{}\n{closing}{after}", text.trim_matches('\n')))
}

/// A document split at the markers of a section.
struct Parts<'a> {
    before: &'a str,
    text: &'a str,
    after: &'a str,
}

impl<'a> Parts<'a> {
    fn of(document: &'a str, name: &str) -> Result<Self, MarkerError> {
        let (opening, closing) = markers(name);
        let Some((before, rest)) = document.split_once(&opening) else { return Err(MarkerError::Missing(opening)) };
        match rest.split_once(&closing) {
            Some((text, after)) => Ok(Self { before, text, after }),
            None if before.contains(&closing) => Err(MarkerError::Order(name.to_owned())),
            None => Err(MarkerError::Missing(closing)),
        }
    }
}

fn markers(name: &str) -> (String, String) {
    (format!("<!-- generated: {name} -->"), format!("<!-- end: {name} -->"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# A\n\n<!-- generated: one -->\nold\n<!-- end: one -->\n\nby hand\n\n<!-- generated: two -->\n<!-- end: two -->\n";

    #[test]
    fn only_text_between_the_markers_is_replaced() {
        let document = with_section(DOCUMENT, "one", "new\ntext").unwrap();
        assert_eq!(document, DOCUMENT.replace("old", "new\ntext"));
        assert_eq!(with_section(&document, "one", "old").unwrap(), DOCUMENT);
        assert_eq!(section(&document, "one"), Ok("new\ntext"));
        assert_eq!(section(&document, "two"), Ok(""));
    }

    #[test]
    fn missing_marker_is_named_in_the_error() {
        let missing = MarkerError::Missing("<!-- generated: three -->".to_owned());
        assert_eq!(with_section(DOCUMENT, "three", "x"), Err(missing));
        let open = DOCUMENT.replace("<!-- end: two -->", "");
        assert_eq!(with_section(&open, "two", "x"), Err(MarkerError::Missing("<!-- end: two -->".to_owned())));
    }

    #[test]
    fn markers_in_the_wrong_order_are_rejected() {
        let document = "<!-- end: one -->\n<!-- generated: one -->\n";
        assert_eq!(section(document, "one"), Err(MarkerError::Order("one".to_owned())));
    }
}

//! The name that was probably meant by one that is unknown.

/// The longest name that is compared, in characters.
const MAX_LEN: usize = 64;

/// The candidate that differs least from a text, if it differs in few characters: in one, or in a third of them. Upper and
/// lower case are the same.
pub fn nearest<'c>(text: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let text: Vec<char> = text.chars().flat_map(char::to_lowercase).take(MAX_LEN + 1).collect();
    if text.is_empty() || text.len() > MAX_LEN {
        return None;
    }
    let limit = (text.len() / 3).max(1);
    let distances = candidates.into_iter().filter(|candidate| candidate.len() <= MAX_LEN).map(|candidate| {
        let lower: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
        (distance(&text, &lower), candidate)
    });
    distances.filter(|(distance, _)| *distance <= limit).min_by_key(|(distance, _)| *distance).map(|(_, found)| found)
}

/// The question that ends a message about an unknown name, or nothing.
pub fn suggestion<'c>(text: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    nearest(text, candidates).map_or_else(String::new, |found| format!("; did you mean {found:?}?"))
}

/// The number of characters to insert, remove or replace.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (number, character) in one.iter().enumerate() {
        let mut diagonal = number;
        let mut left = number.saturating_add(1);
        for (cell, candidate) in row.iter_mut().skip(1).zip(other) {
            let replaced = diagonal.saturating_add(usize::from(character != candidate));
            diagonal = *cell;
            left = replaced.min(cell.saturating_add(1)).min(left.saturating_add(1));
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = number.saturating_add(1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_recognized() {
        let known = ["select", "format", "dialect", "limit"];
        for (text, found) in [
            ("selct", Some("select")),
            ("Select", Some("select")),
            ("formt", Some("format")),
            ("limits", Some("limit")),
            ("dilaect", Some("dialect")),
            ("offset", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(text, known), found, "{text}");
        }
        assert_eq!(nearest(&"a".repeat(1000), known), None);
        assert_eq!(suggestion("selct", known), "; did you mean \"select\"?");
        assert_eq!(suggestion("offset", known), "");
    }

    #[test]
    fn distances_are_those_of_edits() {
        for (one, other, expected) in
            [("", "", 0), ("a", "", 1), ("", "ab", 2), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            let [one, other] = [one, other].map(|text| text.chars().collect::<Vec<_>>());
            assert_eq!(distance(&one, &other), expected);
        }
    }
}

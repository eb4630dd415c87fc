//! How things are written for people.

use std::{borrow::Cow, fmt::Display};

use indicatif::HumanCount;

/// Rows with their cells below each other, two spaces apart.
pub(crate) fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &Vec<String>| {
        let cells: Vec<_> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// As Python writes tuples: `(512, 512)`, `(3,)`, `()`.
pub(crate) fn tuple<T: Display>(items: &[T]) -> String {
    match items {
        [only] => format!("({only},)"),
        items => format!("({})", items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// A number of things: `1 array`, `1,000 arrays`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", HumanCount(count))
}

/// A text that strangers wrote, without what terminals take for commands or for changes of direction.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let is_command = |character: char| {
        character.is_control()
            || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
    };
    if !text.contains(is_command) {
        return Cow::Borrowed(text);
    }
    let escaped = text.chars().map(|character| match character {
        character if is_command(character) => character.escape_unicode().to_string(),
        character => character.to_string(),
    });
    Cow::Owned(escaped.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_below_each_other() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let rows = [row(&["a", "(3, 4)", "x"]), row(&["ünï/", "", ""]), row(&["b", "()"])];
        assert_eq!(columns(&rows), ["a     (3, 4)  x", "ünï/", "b     ()"]);
    }

    #[test]
    fn tuples_and_counts() {
        assert_eq!((tuple::<u64>(&[]), tuple(&[3]), tuple(&[3, 4])), ("()".into(), "(3,)".into(), "(3, 4)".into()));
        assert_eq!((counted(1, "array"), counted(1000, "array")), ("1 array".into(), "1,000 arrays".into()));
    }

    #[test]
    fn terminals_are_not_commanded() {
        assert_eq!(shown("é mice"), "é mice");
        assert_eq!(shown("\u{1b}[31m\u{202e}x\n"), "\\u{1b}[31m\\u{202e}x\\u{a}");
    }
}

//! Formatting of text output.

use std::{borrow::Cow, fmt::Display};

use indicatif::HumanCount;
use zarrd_access::is_invisible;

/// Aligns the cells of rows in columns, two spaces apart.
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

/// Formats a tuple like Python: `(512, 512)`, `(3,)`, `()`.
pub(crate) fn tuple<T: Display>(items: &[T]) -> String {
    match items {
        [only] => format!("({only},)"),
        items => format!("({})", items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Formats a number with its unit: `1 array`, `1,000 arrays`.
pub(crate) fn quantity(count: u64, unit: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {unit}{plural}", HumanCount(count))
}

/// Escapes invisible characters in text from a store, which a terminal could interpret as commands or changes of
/// direction.
pub(crate) fn escape_control(text: &str) -> Cow<'_, str> {
    if !text.contains(is_invisible) {
        return Cow::Borrowed(text);
    }
    let escaped = text.chars().map(|character| match character {
        character if is_invisible(character) => character.escape_unicode().to_string(),
        character => character.to_string(),
    });
    Cow::Owned(escaped.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_aligned() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let rows = [row(&["a", "(3, 4)", "x"]), row(&["ünï/", "", ""]), row(&["b", "()"])];
        assert_eq!(columns(&rows), ["a     (3, 4)  x", "ünï/", "b     ()"]);
    }

    #[test]
    fn tuples_and_quantities_are_formatted() {
        assert_eq!((tuple::<u64>(&[]), tuple(&[3]), tuple(&[3, 4])), ("()".into(), "(3,)".into(), "(3, 4)".into()));
        assert_eq!((quantity(1, "array"), quantity(1000, "array")), ("1 array".into(), "1,000 arrays".into()));
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape_control("é mice"), "é mice");
        assert_eq!(escape_control("\u{1b}[31m\u{202e}x\n"), "\\u{1b}[31m\\u{202e}x\\u{a}");
    }
}

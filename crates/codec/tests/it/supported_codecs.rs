//! docs/reference/formats.md lists the codecs that exist.

use std::{collections::BTreeSet, fs, path::Path};

/// The names in the page's table of codecs: those in backticks, without parentheses and what follows a semicolon.
fn documented() -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/formats.md");
    let page = fs::read_to_string(page).unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with("| codecs |")).skip(2);
    let cells = rows.take_while(|line| line.starts_with('|')).map(|line| line.split('|').nth(2).unwrap().to_owned());
    let names = cells.flat_map(|cell| {
        let outside = cell.split('(').map(|part| part.split_once(')').map_or(part, |(_, outside)| outside));
        let outside: String = outside.collect();
        let listed = outside.split(';').next().unwrap_or_default().to_owned();
        listed.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    });
    names.collect()
}

#[test]
fn page_lists_every_codec() {
    // Every uncompressed array has `bytes`, whose old name is `endian`: they are not worth a row.
    let supported = zarrd_codec::supported_codecs().map(|(_, name)| name.to_owned());
    let supported: BTreeSet<_> = supported.filter(|name| !["bytes", "endian"].contains(&name.as_str())).collect();
    let documented = documented();
    let missing: Vec<_> = supported.difference(&documented).collect();
    assert!(missing.is_empty(), "add {missing:?} to the table of codecs in docs/reference/formats.md");
    let unknown: Vec<_> = documented.difference(&supported).collect();
    assert!(unknown.is_empty(), "docs/reference/formats.md lists {unknown:?}, which are no codecs");
}

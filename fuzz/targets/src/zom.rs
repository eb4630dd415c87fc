//! Zarr Object Models.

use zarrd_meta::{
    json::Json,
    zom::{MAX_VIOLATIONS, Node, Zom, ZomError},
};

/// Parses a ZOM. Two of them, separated by a zero byte, which is not valid JSON, are compared.
pub fn zom(data: &[u8]) {
    let mut parts = data.splitn(2, |&byte| byte == 0);
    let first = parse(parts.next().unwrap_or_default());
    let second = parts.next().and_then(parse);
    let (Some(first), Some(second)) = (first, second) else { return };
    let differences = Zom::differences(&first, &second, MAX_VIOLATIONS);
    assert!(differences.len() <= MAX_VIOLATIONS);
    assert!(differences.iter().all(|difference| difference.pointer.is_empty() || difference.pointer.starts_with('/')));
    if first == second {
        assert!(differences.is_empty(), "{differences:?}");
    }
}

fn parse(text: &[u8]) -> Option<Zom> {
    let zom = match Zom::parse(text.to_vec()) {
        Ok(zom) => zom,
        Err(error) => {
            check_error(&error);
            return None;
        }
    };
    let text = zom.to_text();
    assert_eq!(Json::parse(text.to_bytes()).as_ref(), Ok(&text));
    let again = Zom::parse(text.to_bytes()).expect("a ZOM that was read");
    assert_eq!(again.to_text(), text);
    assert!(Zom::differences(&zom, &again, MAX_VIOLATIONS).is_empty());
    let flat = Json::parse(zom.to_flat_text().to_bytes()).expect("the nodes by their paths");
    assert_eq!(flat.members().count(), zom.len());
    check_names(&zom.root, &zom);
    Some(zom)
}

/// Every error contains a position, within bounds.
fn check_error(error: &ZomError) {
    drop(error.to_string());
    if let ZomError::Invalid { violations } = error {
        assert!((1..=MAX_VIOLATIONS).contains(&violations.len()));
        assert!(violations.iter().all(|violation| violation.pointer.is_empty() || violation.pointer.starts_with('/')));
    }
}

/// Every node has a name that is valid in its dialect.
fn check_names(node: &Node, zom: &Zom) {
    let Node::Group(group) = node else { return };
    for (name, node) in group.members.iter().flatten() {
        assert_eq!(zarrd_meta::names::check(zom.format.dialect(), name), Ok(()));
        check_names(node, zom);
    }
}

//! Minimal edits between objects.

use std::collections::{HashMap, HashSet};

use super::{Change, Json, ObjectEdit};

/// The maximum depth at which objects are compared member by member; below it, different values are replaced.
const MAX_LEVELS: usize = 100;

impl ObjectEdit {
    /// The edit that makes an object equal to another; `None` if one of them is not an object, or has names that cannot
    /// be decoded.
    pub(super) fn matching(before: &Json, target: &Json) -> Option<Self> {
        matching(before, target, MAX_LEVELS)
    }
}

fn matching(before: &Json, target: &Json, levels: usize) -> Option<ObjectEdit> {
    let levels = levels.checked_sub(1)?;
    let (current, values) = (last_values(before)?, last_values(target)?);
    let (mut edit, mut handled) = (ObjectEdit::default(), HashSet::new());
    for name in target.members().filter_map(|member| member.name()) {
        let Some(value) = values.get(&name) else { continue };
        if !handled.insert(name.clone()) {
            continue;
        }
        let inner = current.get(&name).and_then(|stored| matching(stored, value, levels));
        match inner {
            Some(inner) if inner.is_empty() => {}
            Some(inner) => edit.change(name, Change::edit(inner)),
            None => edit.change(name, Change::SetFormatted(value.clone())),
        }
    }
    for name in current.into_keys().filter(|name| !handled.contains(name)) {
        edit.change(name, Change::Remove);
    }
    Some(edit)
}

/// The last value of each name; `None` if it is not an object, or has a name with a lone surrogate.
fn last_values(object: &Json) -> Option<HashMap<String, Json>> {
    let members = object.is_object().then(|| object.members())?;
    members.map(|member| Some((member.name()?, member.value))).collect()
}

//! Making an object say what another one says, with as few changes as that takes.

use std::collections::{HashMap, HashSet};

use super::{Change, Json, ObjectEdit};

/// The number of levels of objects that are compared member by member. Below, values that differ are replaced.
const LEVELS: usize = 100;

impl ObjectEdit {
    /// The changes that make an object equal to another; `None` if they are not both objects, or have names that cannot
    /// be read.
    pub(super) fn matching(before: &Json, wanted: &Json) -> Option<Self> {
        matching(before, wanted, LEVELS)
    }
}

fn matching(before: &Json, wanted: &Json, levels: usize) -> Option<ObjectEdit> {
    let levels = levels.checked_sub(1)?;
    let (there, values) = (last_values(before)?, last_values(wanted)?);
    let (mut edit, mut seen) = (ObjectEdit::default(), HashSet::new());
    for name in wanted.members().filter_map(|member| member.name()) {
        let Some(value) = values.get(&name) else { continue };
        if !seen.insert(name.clone()) {
            continue;
        }
        let inner = there.get(&name).and_then(|stored| matching(stored, value, levels));
        match inner {
            Some(inner) if inner.is_empty() => {}
            Some(inner) => edit.change(name, Change::edit(inner)),
            None => edit.change(name, Change::SetFormatted(value.clone())),
        }
    }
    for name in there.into_keys().filter(|name| !seen.contains(name)) {
        edit.change(name, Change::Remove);
    }
    Some(edit)
}

/// The members of an object by their names, of each name the last one; `None` of what is no object, or has a name with a lone surrogate.
fn last_values(object: &Json) -> Option<HashMap<String, Json>> {
    let members = object.is_object().then(|| object.members())?;
    members.map(|member| Some((member.name()?, member.value))).collect()
}

//! Making an object say what another one says, with as few changes as that takes.

use std::collections::{HashMap, HashSet};

use super::{Change, Json, ObjectEdit};

/// The number of levels of objects that are compared member by member. Below, values that differ are replaced.
const MAX_LEVELS: usize = 100;

impl ObjectEdit {
    /// The changes that make an object equal to another; `None` if they are not both objects, or have names that cannot
    /// be read.
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

/// The members of an object by their names, of each name the last one; `None` of what is no object, or has a name with a lone surrogate.
fn last_values(object: &Json) -> Option<HashMap<String, Json>> {
    let members = object.is_object().then(|| object.members())?;
    members.map(|member| Some((member.name()?, member.value))).collect()
}

//! The bounds of times, which leave units and calendar to the times.

use zarrd_meta::{BoundedTimes, json::Json};

use crate::{attributes::attribute, time::units::is_since};

/// The attributes that times share with their bounds, if `bounds` names an array; `None` if these are no times.
pub fn bounded_times(attributes: &Json, bounds: &str) -> Option<BoundedTimes> {
    let text = |name| attribute(attributes, name).ok().flatten().and_then(|value| value.to_text());
    let units = text("units").filter(|units| is_since(units))?;
    (text("bounds")?.trim() == bounds).then(|| BoundedTimes { units, calendar: text("calendar") })
}

//! Requests as JSON.

use serde_json::{Map, Value, json};

use super::{Item, ReadRequest, Selection, Slice};

impl ReadRequest {
    /// The JSON of the request, which [`from_json`](Self::from_json) reads if it is within the limits.
    ///
    /// ```
    /// use zarrd_meta::select;
    /// use zarrd_meta::selection::ReadRequest;
    ///
    /// let request = ReadRequest::from(select![0..10; 2, [1, 5, 9]]);
    /// assert_eq!(request.to_json(), br#"{"select":[{"start":0,"stop":10,"step":2},[1,5,9]]}"#);
    /// ```
    pub fn to_json(&self) -> Vec<u8> {
        let (name, value) = match self {
            Self::Select(selection) => ("select", items(selection)),
            Self::Points(points) => ("points", json!(points)),
            Self::Stack(selections) => ("stack", selections.iter().map(items).collect()),
        };
        json!({ name: value }).to_string().into_bytes()
    }
}

fn items(selection: &Selection) -> Value {
    selection.items.iter().map(item).collect()
}

fn item(item: &Item) -> Value {
    match item {
        Item::Index(index) => Value::from(*index),
        Item::Slice(slice) => bounds(*slice),
        Item::Ellipsis => Value::from("..."),
        Item::List(indices) => json!(indices),
    }
}

/// The bounds of a slice, without defaults.
fn bounds(slice: Slice) -> Value {
    let bounds = [("start", slice.start), ("stop", slice.stop), ("step", slice.step)];
    let members = bounds.into_iter().filter_map(|(name, bound)| Some((name.to_owned(), Value::from(bound?))));
    Value::Object(members.collect::<Map<_, _>>())
}

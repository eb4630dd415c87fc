//! Read requests with a JSON body.

use serde_json::value::RawValue;

use crate::limits::MAX_RANK;

use super::{
    Item, MAX_LIST_LEN, MAX_POINTS, MAX_STACKED_ITEMS, MAX_STACKED_SELECTIONS, Points, Region, RequestError,
    RequestErrorKind, Selection, SelectionError, Slice,
    json::{self, Shape},
    text::excerpt,
};

/// The elements of an array to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadRequest {
    /// One selection.
    Select(Selection),
    /// Single elements by their coordinates. The result has one dimension.
    Points(Vec<Vec<i64>>),
    /// Selections with results of the same shape, stacked along a new first dimension.
    Stack(Vec<Selection>),
}

/// A [`ReadRequest`] that was resolved against a shape and lies within it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ResolvedSelection {
    /// One region.
    Region(Region),
    /// Single elements.
    Points(Points),
    /// At least one region; all have results of the same shape.
    Stack(Vec<Region>),
}

impl Item {
    /// Parses the JSON of one item: an index, a list of indices, a text, or an object with `start`, `stop` and `step`.
    pub fn from_json(json: &[u8]) -> Result<Self, RequestError> {
        item(json::document(json)?)
    }
}

impl ReadRequest {
    /// Parses the JSON of a request: an object with one of the members `select`, `points` and `stack`.
    ///
    /// ```
    /// use zarrd_meta::selection::ReadRequest;
    ///
    /// for json in [
    ///     r#"{"select": "0:10, ::2"}"#,
    ///     r#"{"select": [{"start": 0, "stop": 10}, 5, [1, 5, 9], "2:10", "..."]}"#,
    ///     r#"{"points": [[0, 1], [5, -1]]}"#,
    ///     r#"{"stack": ["0:2, :", [{"start": 4, "stop": 6}]]}"#,
    /// ] {
    ///     ReadRequest::from_json(json.as_bytes())?;
    /// }
    /// # Ok::<(), zarrd_meta::selection::RequestError>(())
    /// ```
    ///
    /// The caller limits the size of the body. The request takes at most about ten times as much memory, plus 64 MiB.
    pub fn from_json(body: &[u8]) -> Result<Self, RequestError> {
        let mut request = None;
        json::members(json::document(body)?, "an object", |name, value| {
            let found = match name {
                "select" => selection(value).map(Self::Select),
                "points" => points(value).map(Self::Points),
                "stack" => stack(value).map(Self::Stack),
                _ => return Err(unknown(name, "`select`, `points` and `stack`")),
            };
            let found = found.map_err(|error| error.under(name))?;
            match request.replace(found) {
                None => Ok(()),
                Some(_) => Err(RequestErrorKind::NotExactlyOneMember.into()),
            }
        })?;
        request.ok_or_else(|| RequestErrorKind::NotExactlyOneMember.into())
    }

    /// Resolves the request against a shape.
    pub fn resolve(&self, shape: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        match self {
            Self::Select(selection) => selection.resolve(shape).map(ResolvedSelection::Region),
            Self::Points(points) => Points::resolve(points, shape).map(ResolvedSelection::Points),
            // A stack of single elements is a list of points; its errors are reported as those of a stack.
            Self::Stack(selections) => match stacked_points(selections, shape) {
                Some(points) => Ok(ResolvedSelection::Points(points)),
                None => resolve_stack(selections, shape).map(ResolvedSelection::Stack),
            },
        }
    }
}

impl ResolvedSelection {
    /// The shape of the result.
    pub fn shape(&self) -> Vec<u64> {
        match self {
            Self::Region(region) => region.shape(),
            Self::Points(points) => vec![points.len as u64],
            Self::Stack(regions) => {
                let inner = regions.first().map(Region::shape).unwrap_or_default();
                std::iter::once(regions.len() as u64).chain(inner).collect()
            }
        }
    }

    /// The number of elements; `None` if it exceeds a `u64`.
    pub fn elements(&self) -> Option<u64> {
        match self {
            Self::Region(region) => region.elements(),
            Self::Points(points) => Some(points.len as u64),
            Self::Stack(regions) => match regions.first() {
                Some(first) => first.elements()?.checked_mul(regions.len() as u64),
                None => Some(0),
            },
        }
    }
}

/// The points of a stack whose selections are single elements; `None` for other stacks.
fn stacked_points(selections: &[Selection], shape: &[u64]) -> Option<Points> {
    let index = |item: &Item| match item {
        Item::Index(index) => Some(*index),
        _ => None,
    };
    let point = |selection: &Selection| -> Option<Vec<i64>> {
        let is_full = selection.items.len() == shape.len() && !shape.is_empty();
        is_full.then(|| selection.items.iter().map(index).collect()).flatten()
    };
    let points: Vec<Vec<i64>> = selections.iter().map(point).collect::<Option<_>>()?;
    (!points.is_empty()).then(|| Points::resolve(&points, shape).ok()).flatten()
}

fn resolve_stack(selections: &[Selection], shape: &[u64]) -> Result<Vec<Region>, SelectionError> {
    let found = selections.len().saturating_mul(shape.len());
    if found > MAX_STACKED_ITEMS {
        return Err(SelectionError::StackTooLarge { found });
    }
    let mut regions = Vec::new();
    let mut first = None;
    for (at, selection) in selections.iter().enumerate() {
        let region = selection.resolve(shape);
        let region = region.map_err(|error| SelectionError::Stacked { selection: at, source: Box::new(error) })?;
        let found = region.shape();
        let first = first.get_or_insert_with(|| found.clone());
        if found != *first {
            return Err(SelectionError::ShapesDiffer { selection: at, found, first: first.clone() });
        }
        regions.push(region);
    }
    if regions.is_empty() { Err(SelectionError::EmptyStack) } else { Ok(regions) }
}

fn selection(value: &RawValue) -> Result<Selection, RequestError> {
    if let Shape::Text = json::shape(value) {
        return Ok(Selection::parse(&json::text(value, SELECTION)?)?);
    }
    let mut selection = Selection::default();
    json::elements(value, SELECTION, |_, value| Ok(selection.push(item(value)?)?))?;
    Ok(selection)
}

fn item(value: &RawValue) -> Result<Item, RequestError> {
    match json::shape(value) {
        Shape::Object => slice(value).map(Item::Slice),
        Shape::Array => integers(value, MAX_LIST_LEN, "indices in a list").map(Item::List),
        Shape::Text => Ok(Item::parse(&json::text(value, ITEM)?)?),
        Shape::Other => json::integer(value, ITEM).map(Item::Index),
    }
}

fn slice(value: &RawValue) -> Result<Slice, RequestError> {
    let (mut start, mut stop, mut step) = (None, None, None);
    json::members(value, ITEM, |name, value| {
        let (name, bound) = match name {
            "start" => ("start", &mut start),
            "stop" => ("stop", &mut stop),
            "step" => ("step", &mut step),
            _ => return Err(unknown(name, "`start`, `stop` and `step`")),
        };
        let found = match value.get() {
            "null" => None,
            _ => Some(json::integer(value, "a whole number or null").map_err(|error| error.under(name))?),
        };
        match bound.replace(found) {
            None => Ok(()),
            Some(_) => Err(RequestErrorKind::RepeatedMember { name }.into()),
        }
    })?;
    Ok(Slice { start: start.flatten(), stop: stop.flatten(), step: step.flatten() })
}

fn points(value: &RawValue) -> Result<Vec<Vec<i64>>, RequestError> {
    let mut points = Vec::new();
    json::elements(value, "an array of points", |_, value| {
        check_limit(&points, MAX_POINTS, "points")?;
        let mut point = integers(value, MAX_RANK, "coordinates of a point")?;
        point.shrink_to_fit();
        points.push(point);
        Ok(())
    })?;
    Ok(points)
}

fn stack(value: &RawValue) -> Result<Vec<Selection>, RequestError> {
    let mut selections = Vec::new();
    let mut items = 0;
    json::elements(value, "an array of selections", |_, value| {
        check_limit(&selections, MAX_STACKED_SELECTIONS, "selections in a stack")?;
        let selection = selection(value)?;
        items += selection.items.len();
        if items > MAX_STACKED_ITEMS {
            return Err(too_many("items in all the selections of a stack", MAX_STACKED_ITEMS));
        }
        selections.push(selection);
        Ok(())
    })?;
    if selections.is_empty() { Err(RequestErrorKind::EmptyStack.into()) } else { Ok(selections) }
}

fn integers(value: &RawValue, limit: usize, what: &'static str) -> Result<Vec<i64>, RequestError> {
    let mut integers = Vec::new();
    json::elements(value, "an array of whole numbers", |_, value| {
        check_limit(&integers, limit, what)?;
        integers.push(json::integer(value, "a whole number")?);
        Ok(())
    })?;
    Ok(integers)
}

/// Fails if `values` has no room for another one.
fn check_limit<T>(values: &[T], limit: usize, what: &'static str) -> Result<(), RequestError> {
    if values.len() < limit { Ok(()) } else { Err(too_many(what, limit)) }
}

fn too_many(what: &'static str, limit: usize) -> RequestError {
    RequestErrorKind::TooMany { what, limit }.into()
}

fn unknown(name: &str, known: &'static str) -> RequestError {
    RequestErrorKind::UnknownMember { name: excerpt(name), known }.into()
}

const SELECTION: &str = "the text of a selection or an array of its items";

const ITEM: &str = "an index, a list, a text or an object with `start`, `stop` and `step`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_requests_are_parsed() {
        for (json, expected) in [
            (r#"{"select": "0:10, ::2"}"#, "0:10,::2"),
            (r#" {"select" : [ ] } "#, ""),
            (
                r#"{"select": [{"start": -3, "stop": null, "step": 2}, {}, 5, -1, [1, 5, -9], [], "2:10", "...", "(1,2)"]}"#,
                "-3::2,:,5,-1,(1,5,-9),(),2:10,...,(1,2)",
            ),
            (
                r#"{"select": [100000000000000000000, {"stop": -99999999999999999999}]}"#,
                "9223372036854775807,:-9223372036854775808",
            ),
            ("{\"select\": \"\\u0031\"}", "1"),
        ] {
            let ReadRequest::Select(selection) = ReadRequest::from_json(json.as_bytes()).unwrap() else {
                panic!("{json}");
            };
            assert_eq!(selection.to_string(), expected, "{json}");
        }
        let points = ReadRequest::from_json(br#"{"points": [[0, 1], [5, -6]]}"#).unwrap();
        assert_eq!(points, ReadRequest::Points(vec![vec![0, 1], vec![5, -6]]));
        let stack = ReadRequest::from_json(br#"{"stack": ["0:2, :", [{"start": 4, "stop": 6}]]}"#).unwrap();
        let resolved = stack.resolve(&[9, 3]).unwrap();
        assert_eq!((resolved.shape(), resolved.elements()), (vec![2, 2, 3], Some(12)));
        let resolved = points.resolve(&[6, 6]).unwrap();
        assert_eq!((resolved.shape(), resolved.elements()), (vec![2], Some(2)));
    }

    #[test]
    fn errors_have_a_reason_and_a_pointer() {
        for (json, expected) in [
            ("", "this is not JSON: EOF while parsing a value at line 1 column 0"),
            ("{} 1", "this is not JSON: trailing characters at line 1 column 4"),
            ("[1]", "an object is expected, not `[1]`"),
            ("{}", "exactly one of `select`, `points` and `stack` is expected"),
            (r#"{"select": "1", "points": []}"#, "exactly one of `select`, `points` and `stack` is expected"),
            (r#"{"select": "1", "select": "1"}"#, "exactly one of `select`, `points` and `stack` is expected"),
            (r#"{"format": "npy"}"#, "`format` is unknown, known are `select`, `points` and `stack`"),
            (
                r#"{"select": {"start": 1}}"#,
                "the text of a selection or an array of its items is expected, not `{\"start\": 1}` (at /select of the body)",
            ),
            (
                r#"{"select": ["1:2, 3"]}"#,
                "the end is expected after the only item, at byte 3: `,` (at /select/0 of the body)",
            ),
            (
                r#"{"select": ["1", 1.0]}"#,
                "an index, a list, a text or an object with `start`, `stop` and `step` is expected, not `1.0` (at /select/1 of the body)",
            ),
            (
                r#"{"select": [null]}"#,
                "an index, a list, a text or an object with `start`, `stop` and `step` is expected, not `null` (at /select/0 of the body)",
            ),
            (r#"{"select": [[0, [1]]]}"#, "a whole number is expected, not `[1]` (at /select/0/1 of the body)"),
            (
                r#"{"select": [{"start": "1"}]}"#,
                "a whole number or null is expected, not `\"1\"` (at /select/0/start of the body)",
            ),
            (
                r#"{"select": [{"begin": 1}]}"#,
                "`begin` is unknown, known are `start`, `stop` and `step` (at /select/0 of the body)",
            ),
            (r#"{"select": [{"stop": 1, "stop": null}]}"#, "`stop` is given twice (at /select/0 of the body)"),
            (r#"{"select": [5, {"step": 0}]}"#, "the step of a slice must not be 0 (at /select/1 of the body)"),
            (r#"{"select": ["...", "..."]}"#, "a selection has at most one `...` (at /select/1 of the body)"),
            (r#"{"points": [[0, 1], 2]}"#, "an array of whole numbers is expected, not `2` (at /points/1 of the body)"),
            (r#"{"points": [[0, true]]}"#, "a whole number is expected, not `true` (at /points/0/1 of the body)"),
            (r#"{"stack": []}"#, "a stack has at least one selection (at /stack of the body)"),
            (
                r#"{"stack": ["1", "x"]}"#,
                "an index, a slice, a list or `...` is expected, at byte 0: `x` (at /stack/1 of the body)",
            ),
        ] {
            assert_eq!(ReadRequest::from_json(json.as_bytes()).unwrap_err().to_string(), expected, "{json}");
        }
    }

    #[test]
    fn invalid_stacks_have_a_reason() {
        for (json, expected) in [
            (
                r#"{"stack": ["0:2", "1:3", "3:9"]}"#,
                "selection 2 of the stack has the shape [1, 3], but the first one has [2, 3]",
            ),
            (r#"{"stack": ["0", "0:1"]}"#, "selection 1 of the stack has the shape [1, 3], but the first one has [3]"),
            (
                r#"{"stack": ["0", "4"]}"#,
                "selection 1 of the stack: index 4 is out of bounds for dimension 0, whose bounds are -4..4",
            ),
        ] {
            let stack = ReadRequest::from_json(json.as_bytes()).unwrap();
            assert_eq!(stack.resolve(&[4, 3]).unwrap_err().to_string(), expected, "{json}");
        }
        assert_eq!(ReadRequest::Stack(vec![]).resolve(&[4]), Err(SelectionError::EmptyStack));
        let everything = ReadRequest::Stack(vec![Selection::default(); MAX_STACKED_SELECTIONS]);
        assert!(everything.resolve(&[4; 8]).is_ok());
        assert_eq!(
            everything.resolve(&[4; 9]),
            Err(SelectionError::StackTooLarge { found: MAX_STACKED_SELECTIONS * 9 })
        );
    }

    fn refused(json: &str) -> (String, String) {
        let Err(error) = ReadRequest::from_json(json.as_bytes()) else { return Default::default() };
        (error.kind.to_string(), error.pointer)
    }

    #[test]
    fn limits_are_enforced() {
        let many = |element: &str, count: usize| vec![element; count].join(",");
        for (json, expected, pointer) in [
            (
                format!(r#"{{"points": [{}]}}"#, many("[]", MAX_POINTS + 1)),
                "there are at most 1048576 points",
                "/points/1048576",
            ),
            (
                format!(r#"{{"points": [[{}]]}}"#, many("0", 65)),
                "there are at most 64 coordinates of a point",
                "/points/0/64",
            ),
            (
                format!(r#"{{"stack": [{}]}}"#, many("\"\"", MAX_STACKED_SELECTIONS + 1)),
                "there are at most 65536 selections in a stack",
                "/stack/65536",
            ),
            (
                format!(r#"{{"stack": [{}]}}"#, many("\":,:,:,:,:,:,:,:,:\"", MAX_STACKED_SELECTIONS)),
                "there are at most 524288 items in all the selections of a stack",
                "/stack/58254",
            ),
            (
                format!(r#"{{"select": [0, [{}]]}}"#, many("0", MAX_LIST_LEN + 1)),
                "there are at most 1048576 indices in a list",
                "/select/1/1048576",
            ),
            (format!(r#"{{"select": [{}]}}"#, many("[1,2]", 20_000)), "a selection has at most 65 items", "/select/65"),
            (
                format!(r#"{{"select": {}1{}}}"#, "[".repeat(1_000_000), "]".repeat(1_000_000)),
                "a whole number is expected, not `[[[[[[[[[[[[[[[[[[[[[[[[…`",
                "/select/0/0",
            ),
            (format!(r#"{{"select": [{}]}}"#, "9".repeat(3_000_000)), "", ""),
        ] {
            assert_eq!(refused(&json), (expected.to_owned(), pointer.to_owned()));
        }
        for open in ["[", "{\"select\":", "{\"a\":["] {
            let (kind, _) = refused(&open.repeat(1_000_000));
            assert!(kind.starts_with("this is not JSON"), "{kind}");
        }
    }
}

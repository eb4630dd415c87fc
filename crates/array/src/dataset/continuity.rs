//! The order of a coordinate's labels, and whether new ones continue it.

use std::{cmp::Ordering, collections::HashSet};

use zarrd_meta::data_type::{DataType, Number};

/// A check of new labels, one after the other.
///
/// Numbers and times have an order if the labels so far are strictly increasing or decreasing: each new label has to
/// follow the one before it. One label alone may be followed in both directions, and without any there is no order yet.
/// Other labels only may not occur again.
#[derive(Debug)]
pub(crate) struct Continuity {
    data_type: DataType,
    order: Order,
    /// The label before the next one, as its element.
    last: Option<Vec<u8>>,
    /// The labels so far, if they have no order.
    existing: HashSet<Vec<u8>>,
    /// The number of the next label.
    index: u64,
}

/// A label that does not continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Discontinuity {
    pub(crate) kind: DiscontinuityKind,
    /// The number of the new label.
    pub(crate) index: u64,
    /// Its element.
    pub(crate) label: Vec<u8>,
    /// The element of the label before it.
    pub(crate) last: Option<Vec<u8>>,
}

/// The reason why a label does not continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiscontinuityKind {
    /// Labels increase.
    NotGreater,
    /// Labels decrease.
    NotLess,
    /// There is such a label already.
    Repeated,
    /// It is not a number, or not a time.
    Missing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// There are no labels.
    Free,
    /// There is one label, after which the order is that of the next.
    Open,
    Increasing,
    Decreasing,
    /// Labels are in no order.
    None,
}

/// A label as it is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Key {
    Integer(i128),
    Float(f64),
    Missing,
    /// It has no order.
    Other,
}

impl Continuity {
    /// A check of labels that follow these, which are the last ones of a coordinate.
    pub(crate) fn after<'l>(data_type: &DataType, labels: impl IntoIterator<Item = &'l [u8]>) -> Self {
        let labels: Vec<&[u8]> = labels.into_iter().collect();
        let order = order_of(data_type, &labels);
        let existing = match order {
            Order::None => labels.iter().map(|label| label.to_vec()).collect(),
            _ => HashSet::new(),
        };
        let last = labels.last().map(|label| label.to_vec());
        Self { data_type: data_type.clone(), order, last, existing, index: 0 }
    }

    /// True if any label continues.
    pub(crate) fn is_free(&self) -> bool {
        self.order == Order::Free
    }

    /// Checks the next label.
    pub(crate) fn check(&mut self, label: &[u8]) -> Result<(), Discontinuity> {
        let kind = match self.order {
            Order::Free => None,
            Order::None => self.existing.contains(label).then_some(DiscontinuityKind::Repeated),
            Order::Open | Order::Increasing | Order::Decreasing => self.check_order(label),
        };
        if let Some(kind) = kind {
            return Err(Discontinuity { kind, index: self.index, label: label.to_vec(), last: self.last.clone() });
        }
        self.index = self.index.saturating_add(1);
        if self.order != Order::Free {
            self.last = Some(label.to_vec());
        }
        Ok(())
    }

    fn check_order(&mut self, label: &[u8]) -> Option<DiscontinuityKind> {
        let before = self.last.as_deref().map_or(Key::Missing, |last| key(&self.data_type, last));
        let key = key(&self.data_type, label);
        if key == Key::Missing {
            return Some(DiscontinuityKind::Missing);
        }
        let found = compare(before, key);
        match (self.order, found) {
            (Order::Open, Some(Ordering::Less)) => self.order = Order::Increasing,
            (Order::Open, Some(Ordering::Greater)) => self.order = Order::Decreasing,
            (Order::Increasing, Some(Ordering::Less)) | (Order::Decreasing, Some(Ordering::Greater)) => {}
            (Order::Open, _) => return Some(DiscontinuityKind::Repeated),
            (Order::Decreasing, _) => return Some(DiscontinuityKind::NotLess),
            _ => return Some(DiscontinuityKind::NotGreater),
        }
        None
    }
}

/// The order of labels that are there.
fn order_of(data_type: &DataType, labels: &[&[u8]]) -> Order {
    let keys: Vec<Key> = labels.iter().map(|label| key(data_type, label)).collect();
    let all = |wanted| keys.windows(2).all(|pair| matches!(pair, [one, next] if compare(*one, *next) == Some(wanted)));
    match keys.as_slice() {
        [] => Order::Free,
        [Key::Integer(_) | Key::Float(_)] => Order::Open,
        [_] => Order::None,
        _ if all(Ordering::Less) => Order::Increasing,
        _ if all(Ordering::Greater) => Order::Decreasing,
        _ => Order::None,
    }
}

fn compare(one: Key, other: Key) -> Option<Ordering> {
    match (one, other) {
        (Key::Integer(one), Key::Integer(other)) => Some(one.cmp(&other)),
        (Key::Float(one), Key::Float(other)) => one.partial_cmp(&other),
        _ => None,
    }
}

fn key(data_type: &DataType, element: &[u8]) -> Key {
    if data_type.is_missing(element) {
        return Key::Missing;
    }
    if data_type.is_time() {
        return Key::Integer(integer(element, Sign::Signed));
    }
    match data_type.number() {
        Some(Number::UInt8 | Number::UInt16 | Number::UInt32 | Number::UInt64) => {
            Key::Integer(integer(element, Sign::Unsigned))
        }
        Some(Number::Int8 | Number::Int16 | Number::Int32 | Number::Int64) => {
            Key::Integer(integer(element, Sign::Signed))
        }
        Some(Number::Float16 | Number::Float32 | Number::Float64) => {
            data_type.to_f64(element).map_or(Key::Missing, Key::Float)
        }
        _ => Key::Other,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Signed,
    Unsigned,
}

/// The value of a little-endian integer of at most 8 bytes.
fn integer(element: &[u8], sign: Sign) -> i128 {
    let is_negative = sign == Sign::Signed && element.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut word = if is_negative { [0xff; 16] } else { [0; 16] };
    word.iter_mut().zip(element).for_each(|(place, byte)| *place = *byte);
    i128::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zarrd_meta::data_type::parse_v3;

    use super::*;

    fn check(data_type: &str, existing: &[i64], new: &[i64]) -> Result<(), (DiscontinuityKind, u64)> {
        let data_type = parse_v3(&json!(data_type)).unwrap();
        let size = data_type.fixed_size().unwrap();
        let element = |value: &i64| match data_type.number() {
            Some(Number::Float64) => (*value as f64).to_le_bytes().to_vec(),
            _ => value.to_le_bytes()[..size].to_vec(),
        };
        let existing: Vec<_> = existing.iter().map(element).collect();
        let mut continuity = Continuity::after(&data_type, existing.iter().map(Vec::as_slice));
        for new in new {
            continuity.check(&element(new)).map_err(|found| (found.kind, found.index))?;
        }
        Ok(())
    }

    #[test]
    fn labels_continue_in_their_direction() {
        use DiscontinuityKind::*;
        for data_type in ["int64", "float64", "int8"] {
            assert_eq!(check(data_type, &[1, 2, 4], &[5, 9]), Ok(()));
            assert_eq!(check(data_type, &[1, 2, 4], &[4]), Err((NotGreater, 0)), "overlaps");
            assert_eq!(check(data_type, &[1, 2, 4], &[5, 5]), Err((NotGreater, 1)));
            assert_eq!(check(data_type, &[4, 2, -1], &[-2, -3]), Ok(()));
            assert_eq!(check(data_type, &[4, 2, -1], &[0]), Err((NotLess, 0)));
            assert_eq!(check(data_type, &[4], &[5, 6]), Ok(()));
            assert_eq!(check(data_type, &[4], &[3, 2]), Ok(()));
            assert_eq!(check(data_type, &[4], &[4]), Err((Repeated, 0)));
            assert_eq!(check(data_type, &[4], &[5, 4]), Err((NotGreater, 1)));
            assert_eq!(check(data_type, &[], &[7, 3, 3]), Ok(()), "there is no order yet");
            assert_eq!(check(data_type, &[7, 3, 5], &[4, 8, 1]), Ok(()), "stations");
            assert_eq!(check(data_type, &[7, 3, 5], &[4, 3]), Err((Repeated, 1)));
            assert_eq!(check(data_type, &[1, 1], &[1]), Err((Repeated, 0)));
        }
        assert_eq!(check("uint8", &[1, 200], &[255]), Ok(()));
        assert_eq!(check("int8", &[1, 100], &[200]), Err((NotGreater, 0)), "-56");
    }

    #[test]
    fn missing_labels_do_not_continue() {
        let floats = parse_v3(&json!("float64")).unwrap();
        let (one, nan) = (1.0_f64.to_le_bytes(), f64::NAN.to_le_bytes());
        let mut continuity = Continuity::after(&floats, [&one[..]]);
        assert_eq!(continuity.check(&nan).unwrap_err().kind, DiscontinuityKind::Missing);
        let times =
            parse_v3(&json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}})).unwrap();
        let mut continuity = Continuity::after(&times, [&1_i64.to_le_bytes()[..], &2_i64.to_le_bytes()[..]]);
        assert_eq!(continuity.check(&i64::MIN.to_le_bytes()).unwrap_err().kind, DiscontinuityKind::Missing);
        let texts = parse_v3(&json!("string")).unwrap();
        let mut continuity = Continuity::after(&texts, [b"b".as_slice(), b"a"]);
        assert_eq!(continuity.check(b"c"), Ok(()));
        let found = continuity.check(b"a").unwrap_err();
        assert_eq!((found.kind, found.index, found.last), (DiscontinuityKind::Repeated, 1, Some(b"c".to_vec())));
    }
}

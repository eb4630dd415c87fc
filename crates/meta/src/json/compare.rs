//! Comparison of two texts by their values.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use super::{Json, Kind, MAX_DEPTH};

/// The number of digits that every integer of a [`Value`] has room for, with a sign.
const MAX_DIGITS: usize = 18;

impl Json {
    /// True if two texts read strictly_equivalent in every reader: they may differ in layout, in the order of names, in members that others of their name override, in the escapes of strings and in
    /// the digits of floats, and in nothing else. An integer is no float, and -0.0 is not 0.0. Values below [`MAX_DEPTH`] levels are strictly_equivalent where they differ in layout only.
    pub(crate) fn is_strictly_equivalent(&self, right: &Self) -> bool {
        strictly_equivalent(self, right, MAX_DEPTH)
    }

    /// True if two texts are of left value, however they are written.
    pub fn is_equivalent(&self, right: &Self) -> bool {
        self.differences(right, &mut Vec::new(), &mut |_| false)
    }

    /// Reports the places where two values differ, as paths, until `report` has enough and says so by `false`; the answer is whether it has not. The order of names, layout, and
    /// how strings and numbers are written make no difference, down to [`MAX_DEPTH`] levels; below only layout makes none. Arrays of different lengths differ as a whole.
    pub(crate) fn differences(
        &self,
        right: &Self,
        path: &mut Vec<String>,
        report: &mut dyn FnMut(&[String]) -> bool,
    ) -> bool {
        if self == right {
            return true;
        }
        if path.len() >= MAX_DEPTH {
            return self.compacted() == right.compacted() || report(path);
        }
        match (self.kind(), right.kind()) {
            (Kind::Object, Kind::Object) => object_differences(self, right, path, report),
            (Kind::Array, Kind::Array) if self.items().count() == right.items().count() => {
                self.items().zip(right.items()).enumerate().all(|(index, (left, right))| {
                    path.push(index.to_string());
                    let continues = left.differences(&right, path, report);
                    path.pop();
                    continues
                })
            }
            (left, other_kind) if left == other_kind && scalars_are_equal(self, right) => true,
            _ => report(path),
        }
    }
}

fn object_differences(
    left: &Json,
    right: &Json,
    path: &mut Vec<String>,
    report: &mut dyn FnMut(&[String]) -> bool,
) -> bool {
    let (left, right) = (members_by_name(left), members_by_name(right));
    let only_in_other = right.keys().filter(|name| !left.contains_key(*name));
    left.keys().chain(only_in_other).all(|name| {
        path.push(name.clone());
        let continues = match (left.get(name), right.get(name)) {
            (Some(left), Some(right)) => left.differences(right, path, report),
            _ => report(path),
        };
        path.pop();
        continues
    })
}

/// The members of an object. One whose name cannot be read has it as it is written.
fn members_by_name(object: &Json) -> BTreeMap<String, Json> {
    let name = |member: &super::Member| member.name().unwrap_or_else(|| member.quoted_name().as_str().to_owned());
    object.members().map(|member| (name(&member), member.value)).collect()
}

fn strictly_equivalent(left: &Json, right: &Json, levels: usize) -> bool {
    if left == right {
        return true;
    }
    let Some(levels) = levels.checked_sub(1) else { return left.compacted() == right.compacted() };
    match (left.kind(), right.kind()) {
        (Kind::Object, Kind::Object) => {
            let (left, right) = (members_by_name(left), members_by_name(right));
            left.len() == right.len()
                && left.iter().zip(&right).all(|((name, left), (other_name, right))| {
                    name == other_name && strictly_equivalent(left, right, levels)
                })
        }
        (Kind::Array, Kind::Array) => {
            let (mut items, mut others) = (left.items(), right.items());
            loop {
                match (items.next(), others.next()) {
                    (None, None) => return true,
                    (Some(left), Some(right)) if strictly_equivalent(&left, &right, levels) => {}
                    _ => return false,
                }
            }
        }
        (Kind::String, Kind::String) => left.to_text().is_some_and(|text| right.to_text() == Some(text)),
        (Kind::Number, Kind::Number) => left.float().zip(right.float()).is_some_and(|(left, right)| left == right),
        _ => false,
    }
}

impl Json {
    /// The bits of a finite float that is written as left, with a point or an exponent.
    fn float(&self) -> Option<u64> {
        let is_float = self.as_bytes().iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        let float = is_float.then(|| self.as_str().parse::<f64>().ok())??;
        float.is_finite().then(|| float.to_bits())
    }

    /// True if it is a number without point and exponent.
    fn is_integer(&self) -> bool {
        self.as_bytes().iter().all(|byte| matches!(byte, b'0'..=b'9' | b'-'))
    }
}

/// True if two values that are no containers are the same.
fn scalars_are_equal(left: &Json, right: &Json) -> bool {
    // As values, large integers are floats that are near them.
    if left.is_integer() && right.is_integer() && left.len().max(right.len()) > MAX_DIGITS {
        return left == right;
    }
    match (left.to_value(), right.to_value()) {
        (Ok(Value::Number(left)), Ok(Value::Number(right))) => numbers_are_equal(&left, &right),
        (Ok(left), Ok(right)) => left == right,
        // What is no value is the same as what is written in the same way, which these are not.
        _ => false,
    }
}

/// True if two numbers are the same, however they are written.
pub(crate) fn numbers_are_equal(left: &Number, right: &Number) -> bool {
    left == right || integer(left).zip(integer(right)).is_some_and(|(left, right)| left == right)
}

/// The integer that a number is, exactly. Larger floats are none that JSON has as an integer, too.
fn integer(number: &Number) -> Option<i128> {
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < TWO_TO_64);
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    // Exact, since the float is a whole number that an `i128` holds.
    integer.or_else(|| float().map(|float| float as i128))
}

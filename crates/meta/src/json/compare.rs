//! Comparison of two texts by their values.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use super::{Json, Kind, MAX_DEPTH};

/// The number of digits that every integer of a [`Value`] has room for, with a sign.
const MAX_DIGITS: usize = 18;

impl Json {
    /// True if two texts read alike in every reader: they may differ in layout, in the order of names, in members that others of their name override, in the escapes of strings and in
    /// the digits of floats, and in nothing else. An integer is no float, and -0.0 is not 0.0. Values below [`MAX_DEPTH`] levels are alike where they differ in layout only.
    pub(crate) fn is_strictly_equivalent(&self, other: &Self) -> bool {
        alike(self, other, MAX_DEPTH)
    }

    /// True if two texts are of one value, however they are written.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        self.differences(other, &mut Vec::new(), &mut |_| false)
    }

    /// Reports the places where two values differ, as paths, until `report` has enough and says so by `false`; the answer is whether it has not. The order of names, layout, and
    /// how strings and numbers are written make no difference, down to [`MAX_DEPTH`] levels; below only layout makes none. Arrays of different lengths differ as a whole.
    pub(crate) fn differences(
        &self,
        other: &Self,
        path: &mut Vec<String>,
        report: &mut dyn FnMut(&[String]) -> bool,
    ) -> bool {
        if self == other {
            return true;
        }
        if path.len() >= MAX_DEPTH {
            return self.compacted() == other.compacted() || report(path);
        }
        match (self.kind(), other.kind()) {
            (Kind::Object, Kind::Object) => objects(self, other, path, report),
            (Kind::Array, Kind::Array) if self.items().count() == other.items().count() => {
                self.items().zip(other.items()).enumerate().all(|(index, (one, other))| {
                    path.push(index.to_string());
                    let goes_on = one.differences(&other, path, report);
                    path.pop();
                    goes_on
                })
            }
            (one, other_kind) if one == other_kind && same_scalar(self, other) => true,
            _ => report(path),
        }
    }
}

fn objects(one: &Json, other: &Json, path: &mut Vec<String>, report: &mut dyn FnMut(&[String]) -> bool) -> bool {
    let (one, other) = (by_name(one), by_name(other));
    let only_there = other.keys().filter(|name| !one.contains_key(*name));
    one.keys().chain(only_there).all(|name| {
        path.push(name.clone());
        let goes_on = match (one.get(name), other.get(name)) {
            (Some(one), Some(other)) => one.differences(other, path, report),
            _ => report(path),
        };
        path.pop();
        goes_on
    })
}

/// The members of an object. One whose name cannot be read has it as it is written.
fn by_name(object: &Json) -> BTreeMap<String, Json> {
    let name = |member: &super::Member| member.name().unwrap_or_else(|| member.quoted_name().as_str().to_owned());
    object.members().map(|member| (name(&member), member.value)).collect()
}

fn alike(one: &Json, other: &Json, levels: usize) -> bool {
    if one == other {
        return true;
    }
    let Some(levels) = levels.checked_sub(1) else { return one.compacted() == other.compacted() };
    match (one.kind(), other.kind()) {
        (Kind::Object, Kind::Object) => {
            let (one, other) = (by_name(one), by_name(other));
            one.len() == other.len()
                && one
                    .iter()
                    .zip(&other)
                    .all(|((name, one), (other_name, other))| name == other_name && alike(one, other, levels))
        }
        (Kind::Array, Kind::Array) => {
            let (mut items, mut others) = (one.items(), other.items());
            loop {
                match (items.next(), others.next()) {
                    (None, None) => return true,
                    (Some(one), Some(other)) if alike(&one, &other, levels) => {}
                    _ => return false,
                }
            }
        }
        (Kind::String, Kind::String) => one.to_text().is_some_and(|text| other.to_text() == Some(text)),
        (Kind::Number, Kind::Number) => one.float().zip(other.float()).is_some_and(|(one, other)| one == other),
        _ => false,
    }
}

impl Json {
    /// The bits of a finite float that is written as one, with a point or an exponent.
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
fn same_scalar(one: &Json, other: &Json) -> bool {
    // As values, large integers are floats that are near them.
    if one.is_integer() && other.is_integer() && one.len().max(other.len()) > MAX_DIGITS {
        return one == other;
    }
    match (one.to_value(), other.to_value()) {
        (Ok(Value::Number(one)), Ok(Value::Number(other))) => same_number(&one, &other),
        (Ok(one), Ok(other)) => one == other,
        // What is no value is the same as what is written in the same way, which these are not.
        _ => false,
    }
}

/// True if two numbers are the same, however they are written.
pub(crate) fn same_number(one: &Number, other: &Number) -> bool {
    one == other || integer(one).zip(integer(other)).is_some_and(|(one, other)| one == other)
}

/// The integer that a number is, exactly. Larger floats are none that JSON has as an integer, too.
fn integer(number: &Number) -> Option<i128> {
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < TWO_TO_64);
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    // Exact, since the float is a whole number that an `i128` holds.
    whole.or_else(|| float().map(|float| float as i128))
}

//! Comparison of JSON texts by value.

use serde_json::{Number, Value};

use super::{Json, Kind, MAX_DEPTH, by_name::MembersByName};

/// The number of digits, with sign, that every integer of a [`Value`] can hold.
const MAX_DIGITS: usize = 18;

impl Json {
    /// True if two texts have the same meaning for every reader. They may differ in layout, the order of members,
    /// overridden duplicate members, string escapes and the digits of floats. An integer is not equal to a float, and
    /// -0.0 is not equal to 0.0. Values below [`MAX_DEPTH`] levels may differ in layout only.
    pub(crate) fn is_strictly_equivalent(&self, right: &Self) -> bool {
        strictly_equivalent(self, right, MAX_DEPTH)
    }

    /// True if two texts have equal values, regardless of notation.
    pub fn is_equivalent(&self, right: &Self) -> bool {
        self.differences(right, &mut Vec::new(), &mut |_| false)
    }

    /// Reports the paths at which two values differ until `report` returns false; returns false in that case. Layout,
    /// the order of members and the notation of strings and numbers are ignored, below [`MAX_DEPTH`] levels only
    /// layout. Arrays of different lengths differ as a whole.
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
    let (left, right) = (MembersByName::of_all(left), MembersByName::of_all(right));
    let only_in_other = right.iter().filter(|(name, _)| left.position(name).is_none()).map(|(name, _)| (name, None));
    left.iter().map(|(name, left)| (name, Some(left))).chain(only_in_other).all(|(name, in_left)| {
        path.push(name.to_owned());
        let continues = match in_left.and_then(|left| Some((left, right.get(name)?))) {
            Some((left, right)) => left.differences(&right, path, report),
            None => report(path),
        };
        path.pop();
        continues
    })
}

fn strictly_equivalent(left: &Json, right: &Json, levels: usize) -> bool {
    if left == right {
        return true;
    }
    let Some(levels) = levels.checked_sub(1) else { return left.compacted() == right.compacted() };
    match (left.kind(), right.kind()) {
        (Kind::Object, Kind::Object) => {
            let (left, right) = (MembersByName::of_all(left), MembersByName::of_all(right));
            left.len() == right.len()
                && left.iter().zip(right.iter()).all(|((name, left), (other_name, right))| {
                    name == other_name && strictly_equivalent(&left, &right, levels)
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
    /// The bits of a finite float with a point or an exponent.
    fn float(&self) -> Option<u64> {
        let is_float = self.as_bytes().iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        let float = is_float.then(|| self.as_str().parse::<f64>().ok())??;
        float.is_finite().then(|| float.to_bits())
    }

    /// True if the number has neither point nor exponent.
    fn is_integer(&self) -> bool {
        self.as_bytes().iter().all(|byte| matches!(byte, b'0'..=b'9' | b'-'))
    }
}

/// True if two values other than arrays and objects are equal.
fn scalars_are_equal(left: &Json, right: &Json) -> bool {
    // As values, large integers would be rounded to floats.
    if left.is_integer() && right.is_integer() && left.len().max(right.len()) > MAX_DIGITS {
        return left == right;
    }
    match (left.to_value(), right.to_value()) {
        (Ok(Value::Number(left)), Ok(Value::Number(right))) => numbers_are_equal(&left, &right),
        (Ok(left), Ok(right)) => left == right,
        // Texts without a value are only equal if their bytes are.
        _ => false,
    }
}

/// True if two numbers are equal, regardless of notation.
pub(crate) fn numbers_are_equal(left: &Number, right: &Number) -> bool {
    left == right || integer(left).zip(integer(right)).is_some_and(|(left, right)| left == right)
}

/// The exact integer value of a number; `None` for floats that JSON cannot write as an integer.
fn integer(number: &Number) -> Option<i128> {
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < TWO_TO_64);
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    // Exact, because the float is an integer that fits an `i128`.
    integer.or_else(|| float().map(|float| float as i128))
}

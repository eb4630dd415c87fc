//! Rules by which numbers of one type are converted to another.

use std::{fmt, str::FromStr};

use super::Number;

/// A rule by which the numbers of one type are converted to another: NumPy's `casting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Casting {
    /// Conversions that preserve every value.
    Safe,
    /// Those, and conversions within a kind or to a higher one, such as float64 to float32.
    #[default]
    SameKind,
    /// Any conversion between numbers.
    Unsafe,
}

/// A text that is not the name of a [`Casting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown casting: use safe, same_kind or unsafe")]
pub struct CastingError;

impl Casting {
    /// All rules, from the strictest to the laxest.
    pub const ALL: [Self; 3] = [Self::Safe, Self::SameKind, Self::Unsafe];

    /// The name that NumPy has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::SameKind => "same_kind",
            Self::Unsafe => "unsafe",
        }
    }

    /// True if it allows a conversion, as NumPy's `can_cast` says.
    pub fn allows(self, from: Number, to: Number) -> bool {
        match self {
            Self::Safe => is_safe(from, to),
            Self::SameKind => from.kind_rank() <= to.kind_rank(),
            Self::Unsafe => true,
        }
    }
}

impl fmt::Display for Casting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Casting {
    type Err = CastingError;

    fn from_str(text: &str) -> Result<Self, CastingError> {
        Self::ALL.into_iter().find(|casting| casting.name() == text).ok_or(CastingError)
    }
}

/// True if NumPy takes a conversion for safe; those of 64-bit integers to float64 are among these.
fn is_safe(from: Number, to: Number) -> bool {
    // Half of a complex number is a float.
    let part = |number: Number| if number.kind_rank() == 4 { number.size() / 2 } else { number.size() };
    match (from.kind_rank(), to.kind_rank()) {
        (0, _) => true,
        (one, other) if one == other => from.size() <= to.size(),
        (1, 2) => from.size() < to.size(),
        // A float has room for integers of half its size; float64 counts as large enough for all.
        (1 | 2, 3 | 4) => from.size() < part(to) || part(to) >= 8,
        (3, 4) => from.size() <= part(to),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `numpy.can_cast` of NumPy 2.4.6 for all pairs of types, a row for each type to convert from.
    const SAFE: [&str; 14] = [
        "11111111111111",
        "01111000011111",
        "00111000001111",
        "00011000000101",
        "00001000000101",
        "00111111111111",
        "00011011101111",
        "00001001100101",
        "00000000100101",
        "00000000011111",
        "00000000001111",
        "00000000000101",
        "00000000000011",
        "00000000000001",
    ];
    const NUMBERS: [Number; 14] = [
        Number::Bool,
        Number::Int8,
        Number::Int16,
        Number::Int32,
        Number::Int64,
        Number::UInt8,
        Number::UInt16,
        Number::UInt32,
        Number::UInt64,
        Number::Float16,
        Number::Float32,
        Number::Float64,
        Number::Complex64,
        Number::Complex128,
    ];

    #[test]
    fn rules_are_those_of_numpy() {
        for (from, row) in NUMBERS.into_iter().zip(SAFE) {
            for (to, expected) in NUMBERS.into_iter().zip(row.chars()) {
                assert_eq!(Casting::Safe.allows(from, to), expected == '1', "{from:?} {to:?}");
                assert!(Casting::Unsafe.allows(from, to));
                assert!(!Casting::Safe.allows(from, to) || Casting::SameKind.allows(from, to), "{from:?} {to:?}");
            }
        }
        use Number::*;
        for (from, to, expected) in [
            (Float64, Float16, true),
            (Int64, Int8, true),
            (Int8, UInt64, false),
            (UInt64, Int8, true),
            (Float16, Int64, false),
            (Complex64, Float64, false),
            (Bool, UInt8, true),
            (Int8, Bool, false),
        ] {
            assert_eq!(Casting::SameKind.allows(from, to), expected, "{from:?} {to:?}");
        }
    }

    #[test]
    fn names_round_trip() {
        for casting in Casting::ALL {
            assert_eq!(casting.name().parse(), Ok(casting));
            assert_eq!(casting.to_string(), casting.name());
        }
        assert_eq!("same-kind".parse::<Casting>(), Err(CastingError));
    }
}

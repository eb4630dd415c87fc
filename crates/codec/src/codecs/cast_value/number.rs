//! Numbers independent of their format, and the rules by which they are rounded and limited.

use serde::Deserialize;

/// A number of any format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// `significand · 2^exponent`.
    Finite {
        is_negative: bool,
        significand: u64,
        exponent: i32,
    },
    Infinite {
        is_negative: bool,
    },
    /// Not a number. The payload begins with the highest bit.
    Nan {
        is_negative: bool,
        payload: u64,
    },
}

/// The direction in which numbers between two others are rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Rounding {
    #[default]
    NearestEven,
    NearestAway,
    TowardsZero,
    TowardsPositive,
    TowardsNegative,
}

/// The results of numbers beyond the range of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OutOfRange {
    #[default]
    Error,
    /// The largest or smallest integer, or infinity.
    Clamp,
    /// The integer that has the same lowest bits.
    Wrap,
}

/// The rules of a conversion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) rounding: Rounding,
    pub(super) out_of_range: OutOfRange,
}

/// The reason why a number has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Impossible {
    OutOfRange,
    NotFinite,
}

impl Impossible {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::OutOfRange => "an element is out of range of the other type",
            Self::NotFinite => "an element is NaN or infinite, for which no integer is in the scalar_map",
        }
    }
}

/// A significand without its lowest bits, rounded.
pub(super) fn rounded(significand: u64, dropped: u32, is_negative: bool, rounding: Rounding) -> u64 {
    let kept = significand.checked_shr(dropped).unwrap_or(0);
    let rest = u128::from(significand) - (u128::from(kept) << dropped.min(64));
    // Beyond 65 bits, the rest is less than half.
    let half = 1_u128.checked_shl(dropped.saturating_sub(1)).filter(|_| dropped > 0).unwrap_or(u128::MAX);
    let is_up = match rounding {
        _ if rest == 0 => false,
        Rounding::NearestEven => rest > half || (rest == half && kept & 1 == 1),
        Rounding::NearestAway => rest >= half,
        Rounding::TowardsZero => false,
        Rounding::TowardsPositive => !is_negative,
        Rounding::TowardsNegative => is_negative,
    };
    kept + u64::from(is_up)
}

//! Formats of numbers in memory.

use zarrd_meta::data_type::DataType;

use super::number::{Impossible, Number, OutOfRange, Rules, rounded};

/// The format of a type of numbers, of at most 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Integers, in two's complement if they are signed.
    Integer { is_signed: bool, bits: u32 },
    /// Binary floating-point numbers of IEEE 754, with these numbers of bits.
    Float { exponent: u32, mantissa: u32 },
}

/// The bits of a little-endian element of at most 8 bytes.
pub(super) fn load(element: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(element).for_each(|(slot, byte)| *slot = *byte);
    u64::from_le_bytes(bytes)
}

impl Format {
    /// The format of a data type; `None` unless it is one of integers or floats.
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        let integer = |is_signed, bits| Self::Integer { is_signed, bits };
        Some(match data_type.name().as_str() {
            "int2" => integer(true, 2),
            "int4" => integer(true, 4),
            "int8" => integer(true, 8),
            "int16" => integer(true, 16),
            "int32" => integer(true, 32),
            "int64" => integer(true, 64),
            "uint2" => integer(false, 2),
            "uint4" => integer(false, 4),
            "uint8" => integer(false, 8),
            "uint16" => integer(false, 16),
            "uint32" => integer(false, 32),
            "uint64" => integer(false, 64),
            "float8_e3m4" => Self::Float { exponent: 3, mantissa: 4 },
            "float8_e4m3" => Self::Float { exponent: 4, mantissa: 3 },
            "float8_e5m2" => Self::Float { exponent: 5, mantissa: 2 },
            "float16" => Self::Float { exponent: 5, mantissa: 10 },
            "bfloat16" => Self::Float { exponent: 8, mantissa: 7 },
            "float32" => Self::Float { exponent: 8, mantissa: 23 },
            "float64" => Self::Float { exponent: 11, mantissa: 52 },
            _ => return None,
        })
    }

    pub(super) fn is_integer(self) -> bool {
        matches!(self, Self::Integer { .. })
    }

    /// The size of an element in bytes.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Integer { bits, .. } => bits.div_ceil(8) as usize,
            Self::Float { exponent, mantissa } => (1 + exponent + mantissa) as usize / 8,
        }
    }

    pub(super) fn is_nan(self, bits: u64) -> bool {
        matches!(self.number(bits), Number::Nan { .. })
    }

    /// The bits of an equal number: one zero and one NaN stand for all.
    pub(super) fn normalized(self, bits: u64) -> u64 {
        let (exponent, mantissa) = match self {
            Self::Integer { bits: width, .. } => return bits & low_bits(width),
            Self::Float { exponent, mantissa } => (exponent, mantissa),
        };
        let magnitude = bits & !(1 << (exponent + mantissa));
        let infinity = low_bits(exponent) << mantissa;
        match magnitude {
            0 => 0,
            magnitude if magnitude > infinity => infinity + 1,
            _ => bits,
        }
    }

    /// The number that the bits of an element mean.
    pub(super) fn number(self, bits: u64) -> Number {
        match self {
            Self::Integer { is_signed, bits: width } => {
                let bits = bits & low_bits(width);
                let is_negative = is_signed && bits >> (width - 1) == 1;
                let significand = if is_negative { bits.wrapping_neg() & low_bits(width) } else { bits };
                Number::Finite { is_negative, significand, exponent: 0 }
            }
            Self::Float { exponent, mantissa } => {
                let is_negative = bits >> (exponent + mantissa) & 1 == 1;
                let (biased, fraction) = (bits >> mantissa & low_bits(exponent), bits & low_bits(mantissa));
                if biased == low_bits(exponent) {
                    return match fraction {
                        0 => Number::Infinite { is_negative },
                        _ => Number::Nan { is_negative, payload: fraction << (64 - mantissa) },
                    };
                }
                let implicit = if biased == 0 { 0 } else { 1 << mantissa };
                let exponent = self.least_exponent() + biased.saturating_sub(1) as i32;
                Number::Finite { is_negative, significand: fraction | implicit, exponent }
            }
        }
    }

    /// The bits of the element for a number.
    pub(super) fn bits(self, number: Number, rules: Rules) -> Result<u64, Impossible> {
        match self {
            Self::Integer { is_signed, bits } => integer_bits(number, is_signed, bits, rules),
            Self::Float { exponent, mantissa } => self.float_bits(number, exponent, mantissa, rules),
        }
    }

    /// The exponent of the lowest bit of a subnormal number.
    fn least_exponent(self) -> i32 {
        match self {
            Self::Integer { .. } => 0,
            Self::Float { exponent, mantissa } => 2 - (1 << (exponent - 1)) - mantissa as i32,
        }
    }

    fn float_bits(self, number: Number, exponent: u32, mantissa: u32, rules: Rules) -> Result<u64, Impossible> {
        let infinity = low_bits(exponent) << mantissa;
        let signed = |is_negative: bool, bits: u64| bits | u64::from(is_negative) << (exponent + mantissa);
        let (is_negative, significand, power) = match number {
            Number::Infinite { is_negative } => return Ok(signed(is_negative, infinity)),
            Number::Nan { is_negative, payload } => {
                let quiet = 1 << (mantissa - 1);
                return Ok(signed(is_negative, infinity | quiet | payload >> (64 - mantissa)));
            }
            Number::Finite { is_negative, significand: 0, .. } => return Ok(signed(is_negative, 0)),
            Number::Finite { is_negative, significand, exponent } => (is_negative, significand, exponent),
        };
        let length = u64::BITS - significand.leading_zeros();
        // The exponent of the result's lowest bit.
        let lowest = (power + length as i32 - 1 - mantissa as i32).max(self.least_exponent());
        let kept = match u32::try_from(lowest - power) {
            Ok(dropped) => rounded(significand, dropped, is_negative, rules.rounding),
            Err(_) => significand << power.abs_diff(lowest),
        };
        // The implicit bit, and a carry of the rounding, are added to the exponent.
        let biased = u64::from(lowest.abs_diff(self.least_exponent()));
        match biased.checked_shl(mantissa).filter(|_| biased < low_bits(exponent)).map(|biased| biased + kept) {
            Some(bits) if bits < infinity => Ok(signed(is_negative, bits)),
            _ if rules.out_of_range == OutOfRange::Clamp => Ok(signed(is_negative, infinity)),
            _ => Err(Impossible::OutOfRange),
        }
    }
}

fn integer_bits(number: Number, is_signed: bool, width: u32, rules: Rules) -> Result<u64, Impossible> {
    let Number::Finite { is_negative, significand, exponent } = number else { return Err(Impossible::NotFinite) };
    let shift = exponent.unsigned_abs();
    let magnitude = match exponent {
        ..0 => u128::from(rounded(significand, shift, is_negative, rules.rounding)),
        0..64 => u128::from(significand) << shift,
        // Its lowest 64 bits are 0.
        64.. => u128::from(u64::from(significand != 0)) << 64,
    };
    let limit = match (is_signed, is_negative) {
        (true, true) => 1 << (width - 1),
        (true, false) => low_bits(width - 1),
        (false, true) => 0,
        (false, false) => low_bits(width),
    };
    let two_complement = |magnitude: u64| {
        let bits = if is_negative { magnitude.wrapping_neg() } else { magnitude };
        bits & low_bits(width)
    };
    match (u64::try_from(magnitude).ok().filter(|magnitude| *magnitude <= limit), rules.out_of_range) {
        (Some(magnitude), _) => Ok(two_complement(magnitude)),
        (None, OutOfRange::Clamp) => Ok(two_complement(limit)),
        (None, OutOfRange::Wrap) => Ok(two_complement(magnitude as u64)),
        (None, OutOfRange::Error) => Err(Impossible::OutOfRange),
    }
}

/// A number whose lowest bits are set.
fn low_bits(count: u32) -> u64 {
    u64::MAX.checked_shr(64_u32.saturating_sub(count)).unwrap_or(0)
}

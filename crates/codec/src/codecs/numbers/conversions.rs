//! Conversions between number types in which NumPy differs from Rust.

use half::f16;

/// Truncates like `cvttsd2si`: values out of range become the smallest integer.
pub(super) fn to_i32(value: f64) -> i32 {
    if value > -2_147_483_649.0 && value < 2_147_483_648.0 { value as i32 } else { i32::MIN }
}

/// Truncates like [`to_i32`].
pub(super) fn to_i64(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// Keeps the bits of a NaN like NumPy; a processor would set the highest one.
pub(super) fn half_to_single(value: f16) -> f32 {
    if !value.is_nan() {
        return value.to_f32();
    }
    let bits = u32::from(value.to_bits());
    f32::from_bits((bits & 0x8000) << 16 | 0x7f80_0000 | (bits & 0x3ff) << 13)
}

/// Converts like [`half_to_single`].
pub(super) fn half_to_double(value: f16) -> f64 {
    if !value.is_nan() {
        return value.to_f64();
    }
    let bits = u64::from(value.to_bits());
    f64::from_bits((bits & 0x8000) << 48 | 0x7ff0_0000_0000_0000 | (bits & 0x3ff) << 42)
}

/// Converts like [`half_to_single`]; a NaN that would lose all bits keeps the lowest one.
pub(super) fn single_to_half(value: f32) -> f16 {
    if !value.is_nan() {
        return f16::from_f32(value);
    }
    let bits = value.to_bits();
    half_nan((bits >> 31) as u16, (bits >> 13) as u16)
}

/// Rounds once. On some processors, `f16::from_f64` converts through `f32` and rounds twice.
pub(super) fn double_to_half(value: f64) -> f16 {
    if value.is_nan() {
        return half_nan((value.to_bits() >> 63) as u16, (value.to_bits() >> 42) as u16);
    }
    let single = value as f32;
    let back = f64::from(single);
    if back == value {
        return f16::from_f32(single);
    }
    // If the `f32` is rounded to odd, the second rounding has the same result as rounding the original value.
    let bits = single.to_bits();
    let towards_zero = if back.abs() > value.abs() { bits.wrapping_sub(1) } else { bits };
    f16::from_f32(f32::from_bits(towards_zero | 1))
}

pub(super) fn half_nan(sign: u16, mantissa: u16) -> f16 {
    f16::from_bits(sign << 15 | 0x7c00 | (mantissa & 0x3ff).max(1))
}

//! Elements as JSON that NumPy converts back: a list of such elements is an array after `astype`.
//!
//! - Every NaN is `"NaN"`: its other bits have no text that NumPy reads.
//! - A `uint64` that is no `int64` is text, since NumPy makes floats of a list that has both.
//! - A complex number is a text like `"1.5-2.0j"`, since two numbers would be a dimension.
//! - Other elements are written as in `format=json`.

use zarrd_meta::data_type::{DataType, Number};

/// Appends an element.
pub(super) fn write(data_type: &DataType, element: &[u8], out: &mut Vec<u8>) {
    if is_nan(data_type, element) {
        return out.extend_from_slice(b"\"NaN\"");
    }
    match (data_type.number(), element) {
        (Some(Number::UInt64), [.., high]) if *high >= 0x80 => {
            out.push(b'"');
            data_type.write_json(element, out);
            out.push(b'"');
        }
        (Some(Number::Complex64), _) => {
            let (parts, _) = element.as_chunks();
            push_complex(parts.iter().map(|&part| format!("{:?}", f32::from_le_bytes(part))), out);
        }
        (Some(Number::Complex128), _) => {
            let (parts, _) = element.as_chunks();
            push_complex(parts.iter().map(|&part| format!("{:?}", f64::from_le_bytes(part))), out);
        }
        _ => data_type.write_json(element, out),
    }
}

/// Appends an element as JSON, of which a field of CSV is made: every NaN is the bare word.
pub(super) fn write_field(data_type: &DataType, element: &[u8], out: &mut Vec<u8>) {
    match is_nan(data_type, element) {
        true => out.extend_from_slice(b"NaN"),
        false => data_type.write_json(element, out),
    }
}

/// True if an element is a float that is NaN.
fn is_nan(data_type: &DataType, element: &[u8]) -> bool {
    match (data_type.number(), element) {
        (Some(Number::Float16), &[low, high]) => u16::from_le_bytes([low, high]) & 0x7fff > 0x7c00,
        (Some(Number::Float32), &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).is_nan(),
        (Some(Number::Float64), &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]).is_nan(),
        _ => false,
    }
}

/// Appends the text of a complex number.
fn push_complex(mut parts: impl Iterator<Item = String>, out: &mut Vec<u8>) {
    let (real, imaginary) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let sign = if imaginary.starts_with('-') { "" } else { "+" };
    out.extend_from_slice(format!("\"{real}{sign}{imaginary}j\"").as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(name: &str, element: &[u8]) -> String {
        let mut out = Vec::new();
        write(&zarrd_meta::data_type::parse_v3(&json!(name)).unwrap(), element, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn elements_are_what_numpy_reads() {
        for bits in [0x7ff8_0000_0000_0000_u64, 0xfff8_0000_0000_0000, 0x7ff0_0000_0000_0001] {
            assert_eq!(written("float64", &bits.to_le_bytes()), r#""NaN""#);
        }
        assert_eq!(written("float32", &0xffc0_0000_u32.to_le_bytes()), r#""NaN""#);
        assert_eq!(written("float16", &0xfe00_u16.to_le_bytes()), r#""NaN""#);
        assert_eq!(written("float16", &0xfc00_u16.to_le_bytes()), r#""-Infinity""#);
        assert_eq!(written("float64", &1.5_f64.to_le_bytes()), "1.5");
        assert_eq!(written("uint64", &u64::MAX.to_le_bytes()), r#""18446744073709551615""#);
        assert_eq!(written("uint64", &(1_u64 << 63).to_le_bytes()), r#""9223372036854775808""#);
        assert_eq!(written("uint64", &(u64::MAX >> 1).to_le_bytes()), "9223372036854775807");
        assert_eq!(written("int64", &(-1_i64).to_le_bytes()), "-1");
        let pair = |real: f64, imaginary: f64| [real.to_le_bytes(), imaginary.to_le_bytes()].concat();
        assert_eq!(written("complex128", &pair(1e300, -0.0)), r#""1e300-0.0j""#);
        assert_eq!(written("complex128", &pair(f64::NAN, f64::NEG_INFINITY)), r#""NaN-infj""#);
        assert_eq!(written("complex128", &pair(f64::INFINITY, f64::NAN)), r#""inf+NaNj""#);
        let single = [0.1_f32.to_le_bytes(), 2_f32.to_le_bytes()].concat();
        assert_eq!(written("complex64", &single), r#""0.1+2.0j""#);
    }
}

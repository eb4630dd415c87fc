//! JSON in exactly the form of Python's `json` module.

use serde_json::{Number, Value};

/// The options of `json.dumps`.
#[derive(Clone, Debug)]
pub(super) struct PythonJson {
    /// True if characters beyond ASCII are escaped.
    pub(super) ensure_ascii: bool,
    /// True if the members of objects are sorted.
    pub(super) sort_keys: bool,
    /// The separator of items, and that of keys and values.
    pub(super) separators: [String; 2],
}

impl PythonJson {
    /// `json.dumps`.
    pub(super) fn write(&self, value: &Value) -> String {
        let mut out = String::new();
        self.value(value, &mut out);
        out
    }

    /// The recursion is as deep as the value, which was parsed with a limit.
    fn value(&self, value: &Value, out: &mut String) {
        let [between, colon] = &self.separators;
        match value {
            Value::Null => out.push_str("null"),
            Value::Bool(true) => out.push_str("true"),
            Value::Bool(false) => out.push_str("false"),
            Value::Number(number) => out.push_str(&repr(number)),
            Value::String(text) => self.string(text, out),
            Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { between });
                    self.value(item, out);
                }
                out.push(']');
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                if self.sort_keys {
                    members.sort_unstable_by_key(|&(key, _)| key);
                }
                out.push('{');
                for (index, (key, member)) in members.into_iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { between });
                    self.string(key, out);
                    out.push_str(colon);
                    self.value(member, out);
                }
                out.push('}');
            }
        }
    }

    fn string(&self, text: &str, out: &mut String) {
        out.push('"');
        for character in text.chars() {
            match character {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{c}' => out.push_str("\\f"),
                '\u{8}' => out.push_str("\\b"),
                ' '..='~' => out.push(character),
                '\u{7f}'.. if !self.ensure_ascii => out.push(character),
                _ => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
        }
        out.push('"');
    }
}

/// Python's `repr` of a number: the shortest digits that read back the same float.
fn repr(number: &Number) -> String {
    let float = match number.as_f64() {
        Some(float) if number.is_f64() => float,
        _ => return number.to_string(),
    };
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..16 if float.fract() == 0.0 => format!("{float}.0"),
        -4..16 => format!("{float}"),
        exponent @ 0.. => format!("{digits}e+{exponent:02}"),
        exponent => format!("{digits}e-{:02}", exponent.unsigned_abs()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn python(ensure_ascii: bool) -> PythonJson {
        PythonJson { ensure_ascii, sort_keys: true, separators: [",".to_owned(), ":".to_owned()] }
    }

    #[test]
    fn output_matches_python() {
        let known = [
            (json!({"b": 1, "a": [1.5, null, true]}), r#"{"a":[1.5,null,true],"b":1}"#),
            (json!("hé😀"), r#""h\u00e9\ud83d\ude00""#),
            (json!("\"\\/\u{8}\u{c}\n\r\t\u{1}\u{7f}"), r#""\"\\/\b\f\n\r\t\u0001\u007f""#),
            (
                json!([1e16, 1e-5, 0.0001, 1e22, 123456789.125, 1e15, -0.0, 1.5e-300, 5e-324, u64::MAX, i64::MIN]),
                "[1e+16,1e-05,0.0001,1e+22,123456789.125,1000000000000000.0,-0.0,1.5e-300,5e-324,18446744073709551615,-9223372036854775808]",
            ),
        ];
        for (value, text) in known {
            assert_eq!(python(true).write(&value), text);
        }
        assert_eq!(python(false).write(&json!("é\u{1}\u{7f}")), "\"é\\u0001\u{7f}\"");
    }
}

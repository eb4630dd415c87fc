//! Lists of texts.

use zarrd_codec::{VariableBuilder, VariableElements};

/// Collects texts in one buffer.
#[derive(Debug)]
pub(super) struct TextBuilder(VariableBuilder);

impl Default for TextBuilder {
    fn default() -> Self {
        // The memory is reserved before.
        Self(VariableBuilder::new(u64::MAX))
    }
}

impl TextBuilder {
    pub(super) fn push(&mut self, text: &[u8]) {
        // A budget without an end is not exceeded.
        let _ = self.0.push(text);
    }

    /// Appends the text of a JSON string, or other JSON as it is.
    pub(super) fn push_json(&mut self, json: &[u8]) {
        match serde_json::from_slice::<String>(json) {
            Ok(text) if json.first() == Some(&b'"') => self.push(text.as_bytes()),
            _ => self.push(json),
        }
    }

    pub(super) fn finish(self) -> VariableElements {
        self.0.finish()
    }
}

impl<'a> FromIterator<&'a str> for TextBuilder {
    fn from_iter<T: IntoIterator<Item = &'a str>>(texts: T) -> Self {
        let mut builder = Self::default();
        texts.into_iter().for_each(|text| builder.push(text.as_bytes()));
        builder
    }
}

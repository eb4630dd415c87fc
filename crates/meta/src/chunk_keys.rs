//! Chunk key encodings: where a chunk's bytes are.

/// How the indices of a chunk become a key, below the prefix that [`ArrayModel::chunk_prefix`](crate::ArrayModel::chunk_prefix) has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkKeyEncoding {
    /// The form.
    pub form: ChunkKeyForm,
    /// What stands between the indices.
    pub separator: Separator,
}

/// The forms of chunk keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKeyForm {
    /// v3 `default`: `c/1/23/45` or `c.1.23.45`; `c` for 0-dimensional arrays.
    Default,
    /// v2, and v3 `v2`: `1.23.45` or `1/23/45`; `0` for 0-dimensional arrays.
    V2,
    /// Draft: `c1/23/45` or `c1.23.45`; `c` for 0-dimensional arrays, which zarr-python 2.x wrote as `c0`.
    Draft,
}

/// What stands between the indices of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// `/`
    Slash,
    /// `.`
    Dot,
}

impl ChunkKeyEncoding {
    /// The key of a chunk.
    pub fn key(self, chunk: &[u64]) -> String {
        let separator = self.separator.as_str();
        let indices = chunk.iter().map(u64::to_string).collect::<Vec<_>>().join(separator);
        match (self.form, chunk.is_empty()) {
            (ChunkKeyForm::Default | ChunkKeyForm::Draft, true) => "c".to_owned(),
            (ChunkKeyForm::V2, true) => "0".to_owned(),
            (ChunkKeyForm::Default, false) => format!("c{separator}{indices}"),
            (ChunkKeyForm::V2, false) => indices,
            (ChunkKeyForm::Draft, false) => format!("c{indices}"),
        }
    }

    /// Another key under which some writers put the chunk; looked at where the first has no value.
    pub fn fallback_key(self, chunk: &[u64]) -> Option<&'static str> {
        (self.form == ChunkKeyForm::Draft && chunk.is_empty()).then_some("c0")
    }
}

impl Separator {
    /// Its text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Slash => "/",
            Self::Dot => ".",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_all_forms() {
        let key = |form, separator, chunk: &[u64]| ChunkKeyEncoding { form, separator }.key(chunk);
        assert_eq!(key(ChunkKeyForm::Default, Separator::Slash, &[1, 23, 45]), "c/1/23/45");
        assert_eq!(key(ChunkKeyForm::Default, Separator::Dot, &[1, 23, 45]), "c.1.23.45");
        assert_eq!(key(ChunkKeyForm::V2, Separator::Dot, &[1, 23, 45]), "1.23.45");
        assert_eq!(key(ChunkKeyForm::V2, Separator::Slash, &[1]), "1");
        assert_eq!(key(ChunkKeyForm::Draft, Separator::Slash, &[1, 23, 45]), "c1/23/45");
        assert_eq!(key(ChunkKeyForm::Draft, Separator::Dot, &[0, 0]), "c0.0");
        for (form, zero_d) in [(ChunkKeyForm::Default, "c"), (ChunkKeyForm::V2, "0"), (ChunkKeyForm::Draft, "c")] {
            assert_eq!(key(form, Separator::Slash, &[]), zero_d);
        }
    }

    #[test]
    fn another_key_of_the_draft_alone() {
        let fallback = |form, chunk: &[u64]| ChunkKeyEncoding { form, separator: Separator::Slash }.fallback_key(chunk);
        assert_eq!(fallback(ChunkKeyForm::Draft, &[]), Some("c0"));
        assert_eq!(fallback(ChunkKeyForm::Draft, &[0]), None);
        assert_eq!(fallback(ChunkKeyForm::Default, &[]), None);
    }
}

//! Chunk key encodings.

use std::iter::repeat;

/// The length of most indices with a separator, in bytes.
const TYPICAL_INDEX_LEN: usize = 4;

/// The encoding of chunk indices as a key below [`ArrayModel::chunk_prefix`](crate::ArrayModel::chunk_prefix).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkKeyEncoding {
    /// The form.
    pub form: ChunkKeyForm,
    /// The separator of the indices.
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

/// The separator of a chunk's indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// `/`
    Slash,
    /// `.`
    Dot,
}

/// Decodes the chunk keys of an array.
#[derive(Clone, Debug)]
pub struct ChunkKeyDecoder {
    encoding: ChunkKeyEncoding,
    /// The number of chunks along each dimension.
    num_chunks: Vec<u64>,
}

impl ChunkKeyDecoder {
    /// A decoder for an array with this number of chunks along each dimension.
    pub fn new(encoding: ChunkKeyEncoding, num_chunks: Vec<u64>) -> Self {
        Self { encoding, num_chunks }
    }

    /// The indices of the chunk with a key below the array's prefix, whether or not the array has such a chunk. `None`
    /// if the key is not a chunk key.
    pub fn decode(&self, key: &str) -> Option<Vec<u64>> {
        self.encoding.parse(key, self.num_chunks.len())
    }

    /// True if the chunk with these indices has elements of the array.
    pub fn is_within_array(&self, chunk: &[u64]) -> bool {
        chunk.iter().zip(&self.num_chunks).all(|(index, count)| index < count)
    }
}

impl ChunkKeyEncoding {
    /// The key of a chunk.
    pub fn key(self, chunk: &[u64]) -> String {
        let (start, before_first) = match self.form {
            ChunkKeyForm::Default => ("c", self.separator.as_str()),
            ChunkKeyForm::Draft => ("c", ""),
            ChunkKeyForm::V2 if chunk.is_empty() => ("0", ""),
            ChunkKeyForm::V2 => ("", ""),
        };
        let mut key = String::with_capacity(start.len() + chunk.len() * TYPICAL_INDEX_LEN);
        key.push_str(start);
        let separators = [before_first].into_iter().chain(repeat(self.separator.as_str()));
        for (index, separator) in chunk.iter().zip(separators) {
            key.push_str(separator);
            key.push_str(&index.to_string());
        }
        key
    }

    /// The prefix of the keys of all chunks that begin with these indices, of an array of `rank` dimensions: `c/5/`.
    /// `None` if their keys do not have one.
    pub fn prefix(self, indices: &[u64], rank: usize) -> Option<String> {
        // A key with all indices is that of a chunk, and below it there is nothing.
        let indices = indices.get(..indices.len().min(rank.checked_sub(1)?))?;
        match (self.separator, self.form, indices) {
            (Separator::Dot, ..) | (Separator::Slash, ChunkKeyForm::V2 | ChunkKeyForm::Draft, []) => None,
            (Separator::Slash, ChunkKeyForm::Default, []) => Some("c/".to_owned()),
            (Separator::Slash, _, indices) => Some(format!("{}/", self.key(indices))),
        }
    }

    /// The chunk indices in a key made by [`key`](Self::key) or [`fallback_key`](Self::fallback_key), for an array of
    /// `rank` dimensions; `None` if it is not a chunk key.
    pub fn parse(self, key: &str, rank: usize) -> Option<Vec<u64>> {
        if rank == 0 {
            let is_key = key == self.key(&[]) || Some(key) == self.fallback_key(&[]);
            return is_key.then(Vec::new);
        }
        let separator = self.separator.as_str();
        let indices = match self.form {
            ChunkKeyForm::Default => key.strip_prefix('c')?.strip_prefix(separator)?,
            ChunkKeyForm::Draft => key.strip_prefix('c')?,
            ChunkKeyForm::V2 => key,
        };
        // One index more than the rank is enough to detect too many.
        let chunk: Vec<u64> = indices.split(separator).take(rank + 1).map(index).collect::<Option<_>>()?;
        (chunk.len() == rank).then_some(chunk)
    }

    /// The key under which a chunk is written. It differs from [`key`](Self::key) if zarr-python 2.x, the writer of the
    /// dialect, only reads another one.
    pub fn written_key(self, chunk: &[u64]) -> String {
        self.fallback_key(chunk).map_or_else(|| self.key(chunk), str::to_owned)
    }

    /// The key of some writers for the chunk, read if [`key`](Self::key) has no value.
    pub fn fallback_key(self, chunk: &[u64]) -> Option<&'static str> {
        (self.form == ChunkKeyForm::Draft && chunk.is_empty()).then_some("c0")
    }
}

/// Parses an index in canonical form: without sign and leading zeros.
fn index(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    (canonical && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

impl Separator {
    /// The separator as text.
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
    fn keys_are_formatted_in_each_form() {
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
    fn prefixes_are_those_of_keys() {
        for form in [ChunkKeyForm::Default, ChunkKeyForm::V2, ChunkKeyForm::Draft] {
            let encoding = ChunkKeyEncoding { form, separator: Separator::Slash };
            for fixed in [&[5][..], &[5, 7], &[5, 7, 9]] {
                let prefix = encoding.prefix(fixed, 3).unwrap();
                assert!(encoding.key(&[5, 7, 9]).starts_with(&prefix), "{prefix}");
                assert!(!encoding.key(&[55, 7, 9]).starts_with(&prefix), "{prefix}");
            }
            assert_eq!(encoding.prefix(&[], 0), None);
            assert_eq!(ChunkKeyEncoding { form, separator: Separator::Dot }.prefix(&[5], 3), None);
        }
        let default = ChunkKeyEncoding { form: ChunkKeyForm::Default, separator: Separator::Slash };
        assert_eq!((default.prefix(&[], 2), default.prefix(&[3], 2)), (Some("c/".into()), Some("c/3/".into())));
    }

    #[test]
    fn keys_roundtrip() {
        for form in [ChunkKeyForm::Default, ChunkKeyForm::V2, ChunkKeyForm::Draft] {
            for separator in [Separator::Slash, Separator::Dot] {
                let encoding = ChunkKeyEncoding { form, separator };
                for chunk in [&[][..], &[0], &[7, 0], &[1, 23, u64::MAX]] {
                    assert_eq!(
                        encoding.parse(&encoding.key(chunk), chunk.len()).as_deref(),
                        Some(chunk),
                        "{encoding:?}"
                    );
                    // In v2, `0` is the key of the only chunk of a scalar and of the first chunk of a one-dimensional
                    // array.
                    if !(form == ChunkKeyForm::V2 && chunk.is_empty()) {
                        assert_eq!(encoding.parse(&encoding.key(chunk), chunk.len() + 1), None, "{encoding:?}");
                    }
                }
                for no_key in
                    ["", "c", "c/", "1/", "/1", "c01", "01", "+1", "c/+1", "18446744073709551616", "zarr.json"]
                {
                    assert_eq!(encoding.parse(no_key, 1), None, "{no_key} {encoding:?}");
                }
            }
        }
        let draft = ChunkKeyEncoding { form: ChunkKeyForm::Draft, separator: Separator::Slash };
        assert_eq!(draft.parse("c0", 0), Some(vec![]));
    }

    #[test]
    fn only_draft_scalars_have_a_fallback_key() {
        let fallback = |form, chunk: &[u64]| ChunkKeyEncoding { form, separator: Separator::Slash }.fallback_key(chunk);
        assert_eq!(fallback(ChunkKeyForm::Draft, &[]), Some("c0"));
        assert_eq!(fallback(ChunkKeyForm::Draft, &[0]), None);
        assert_eq!(fallback(ChunkKeyForm::Default, &[]), None);
    }
}

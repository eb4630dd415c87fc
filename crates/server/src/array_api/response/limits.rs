//! The sizes up to which elements are sent.

use zarrd_array::ArrayResult;
use zarrd_meta::selection::Selection;
use zarrd_wire::{array::Format, query::PictureAnswer};

use super::ResponseSpec;
use crate::{app::App, array_api::encode::ArraySlice, error::ApiError};

/// The minimum size charged for an element of variable length, in bytes.
const VARIABLE_ELEMENT_COST: u64 = 16;
/// The factor from the limit of elements in memory to the limit of their text.
const TEXT_PER_BYTE: u64 = 4;

/// A limit that a response would exceed.
pub(super) struct LimitExceeded {
    size: Option<u64>,
    limit: u64,
    detail: String,
}

impl ResponseSpec {
    /// The limit of selected bytes, and its flag.
    pub(super) fn limit(&self, app: &App) -> (u64, &'static str) {
        let limits = &app.settings().limits;
        match self.format {
            Format::Raw | Format::Npy => (limits.selection, "--max-selection"),
            Format::Json | Format::Csv | Format::Png | Format::Xarray => {
                (limits.text_selection, "--max-text-selection")
            }
        }
    }

    /// Checks the limits that apply to the encoded response, and suggests a smaller selection in the error.
    pub(super) fn check_limits(&self, limit: u64, slice: &ArraySlice, result: &ArrayResult) -> Result<(), ApiError> {
        self.check_size(limit, slice).map_err(|LimitExceeded { size, limit: max_size, detail }| {
            ApiError::selection_too_large(size, max_size, self.leading_part(limit, result).as_ref(), detail)
        })
    }

    /// Returns a leading part of the selection within the limits.
    pub(super) fn leading_part(&self, limit: u64, result: &ArrayResult) -> Option<Selection> {
        let all = self.slice_of(result);
        let range = |shape: &[u64]| ArraySlice { shape: shape.to_vec(), ..all.clone() };
        result.smaller(|shape| self.check_size(limit, &range(shape)).is_ok())
    }

    pub(super) fn check_size(&self, limit: u64, slice: &ArraySlice) -> Result<(), LimitExceeded> {
        if let Some(count) = self.placeholders(slice).filter(|&count| count > limit) {
            let detail =
                format!("{count} elements or lists without bytes exceed the limit of {limit} (`--max-text-selection`)");
            return Err(LimitExceeded { size: None, limit, detail });
        }
        self.check_text_size(limit, slice)?;
        // NumPy strings are encoded at once, so the limit of text applies.
        let strings = self.format == Format::Npy && slice.is_variable();
        let min_size = slice.elements().unwrap_or(u64::MAX).saturating_mul(VARIABLE_ELEMENT_COST);
        if strings && min_size > limit {
            let detail = format!(
                "the selection has {min_size} bytes, which exceeds the limit of {limit} for strings in npy (`--max-text-selection`)"
            );
            return Err(LimitExceeded { size: Some(min_size), limit, detail });
        }
        Ok(())
    }

    /// Checks the limit of text, assuming the longest text for each element.
    fn check_text_size(&self, limit: u64, slice: &ArraySlice) -> Result<(), LimitExceeded> {
        let limit = limit.saturating_mul(TEXT_PER_BYTE);
        let text = match self.format {
            _ if self.picture.answer == PictureAnswer::Thresholds => return Ok(()),
            Format::Json | Format::Xarray => slice.max_json_len(),
            Format::Csv => slice.max_csv_len(),
            Format::Raw | Format::Npy | Format::Png => return Ok(()),
        };
        if text <= limit {
            return Ok(());
        }
        let detail = format!(
            "the selection may have {text} bytes as {}, which exceeds the limit of {limit}, {TEXT_PER_BYTE} times `--max-text-selection`; raw and npy are shorter",
            self.format
        );
        Err(LimitExceeded { size: Some(text), limit, detail })
    }

    /// Returns [`ArraySlice::placeholders`] for formats that are encoded element by element.
    pub(super) fn placeholders(&self, slice: &ArraySlice) -> Option<u64> {
        let is_text = matches!(self.format, Format::Json | Format::Csv | Format::Xarray);
        slice.placeholders().filter(|_| is_text && self.picture.answer == PictureAnswer::Pixels)
    }
}

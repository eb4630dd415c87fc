//! Times of a calendar as numbers, which have an order and means.

use zarrd_codec::{Elements, VariableBuilder};

use crate::{
    error::CfError,
    kernel::TEXT_MEMORY,
    time::{NOT_A_TIME, calendar::Calendar, iso},
};

/// The size of a moment in bytes.
const SIZE: usize = size_of::<i64>();

/// The way from moments back to the texts of a calendar. Moments are `numpy.datetime64[us]` that count the days of the
/// calendar from the start of 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarTexts(pub(crate) Calendar);

impl CalendarTexts {
    /// The texts of a buffer of moments.
    ///
    /// # Errors
    ///
    /// A buffer with a part of a moment.
    pub fn write(self, moments: &Elements) -> Result<Elements, CfError> {
        let Elements::Fixed(bytes) = moments else { return Ok(moments.clone()) };
        let (chunks, rest) = bytes.as_chunks::<SIZE>();
        let partial = || CfError::PartialElements { len: bytes.len(), size: SIZE };
        if !rest.is_empty() {
            return Err(partial());
        }
        let mut builder = VariableBuilder::new((chunks.len() as u64).saturating_mul(TEXT_MEMORY));
        let mut text = String::with_capacity(40);
        for chunk in chunks {
            text.clear();
            match i64::from_le_bytes(*chunk) {
                NOT_A_TIME => text.push_str("NaT"),
                count => iso::write(i128::from(count).saturating_mul(1000), self.0, &mut text),
            }
            builder.push(text.as_bytes()).map_err(|_| partial())?;
        }
        Ok(Elements::Variable(builder.finish()))
    }
}

//! Times that may be outside of the range of `datetime64[ns]`.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use zarrd_cf::Decoding;
use zarrd_meta::{Dialect, selection::ReadRequest};

use crate::{
    context::Context,
    error::ArrayError,
    map::{Decode, stable_hash},
    read::{array_read::ArrayRead, consumer::ElementLimit, current::plan_read},
    result_cache::ResultKey,
};

/// The decoding by CF of the elements of a planned read: [`Decode::CfTexts`] if they are times, some of which
/// `datetime64[ns]` cannot represent, and otherwise [`Decode::Cf`]. The elements are read for that, unless no element of
/// their type is such a time, or the result is cached.
///
/// They may change before the planned read takes its snapshot; decoding one that does not fit fails then.
pub(crate) async fn decode_times(
    context: &Arc<Context>,
    (planned, dialect): (&ArrayRead, Option<Dialect>),
    request: &ReadRequest,
) -> Result<Decode, ArrayError> {
    // Attributes that are invalid are an error later.
    let Ok(Some(decoding)) = Decoding::of_array(planned.model()) else { return Ok(Decode::Cf) };
    if !decoding.may_exceed_datetime64() {
        return Ok(Decode::Cf);
    }
    let key = planned.fingerprint().map(|input| ResultKey { input, computation: stable_hash(&"fits datetime64") });
    let cached = key.as_ref().and_then(|key| context.results.get(key));
    let fits = match cached {
        Some(fits) => fits.as_ref() == [1],
        None => {
            let elements = plan_read(context, (planned.path(), dialect), request, &ElementLimit(u64::MAX)).await?;
            let key = key.filter(|key| elements.fingerprint() == Some(key.input));
            let fits = all_fit(elements, &decoding).await?;
            if let Some(key) = key {
                context.results.insert(key, Bytes::copy_from_slice(&[u8::from(fits)]));
            }
            fits
        }
    };
    Ok(if fits { Decode::Cf } else { Decode::CfTexts })
}

/// True if `datetime64[ns]` can represent all elements.
async fn all_fit(elements: ArrayRead, decoding: &Decoding) -> Result<bool, ArrayError> {
    let mut pieces = std::pin::pin!(elements.into_stream());
    while let Some(piece) = pieces.try_next().await? {
        if !decoding.fits_datetime64(&piece) {
            return Ok(false);
        }
    }
    Ok(true)
}

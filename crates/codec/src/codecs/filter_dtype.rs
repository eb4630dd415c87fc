//! The `dtype`s of filters that support both numbers and times.

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;
use zarrd_meta::{
    codecs::CodecSpec,
    data_type::{DataType, Number, StoredOrder, V2Context, parse_v2},
};

use super::{filter::FilterElements, numbers::Dtype};
use crate::{ChainError, CodecInput, factory::invalid_configuration};

/// A configured `dtype` such as `<f4` or `>m8[10us]`.
#[derive(Clone, Debug)]
pub(super) enum FilterDtype {
    Number(Dtype),
    /// A datetime or a timedelta; NumPy casts it as the `int64` that counts its units.
    Time {
        data_type: DataType,
        order: StoredOrder,
    },
}

impl FilterDtype {
    /// The configured `dtype`, or by default the data type of an input array.
    pub(super) fn configured_or_input(
        configured: Option<Self>,
        spec: &CodecSpec,
        input: CodecInput<'_>,
    ) -> Result<Self, ChainError> {
        if let Some(configured) = configured {
            return Ok(configured);
        }
        let found = match input {
            CodecInput::Array(array) => {
                let number = array.data_type().number().map(|number| Self::Number(Dtype::little(number)));
                number.or_else(|| Self::from_time_type(array.data_type().clone(), StoredOrder::Little))
            }
            // As in numcodecs, there is no default for bytes.
            CodecInput::Bytes(_) => None,
        };
        found.ok_or_else(|| invalid_configuration(spec, "requires a dtype"))
    }

    fn from_time_type(data_type: DataType, order: StoredOrder) -> Option<Self> {
        let time = is_datetime(&data_type) || is_timedelta(&data_type);
        time.then_some(Self::Time { data_type, order })
    }

    /// The number type by which NumPy casts the elements.
    pub(super) fn number(&self) -> Number {
        match self {
            Self::Number(dtype) => dtype.number,
            Self::Time { .. } => Number::Int64,
        }
    }

    /// The data type, if it is a datetime or timedelta.
    pub(super) fn as_time(&self) -> Option<&DataType> {
        match self {
            Self::Number(_) => None,
            Self::Time { data_type, .. } => Some(data_type),
        }
    }

    /// The elements on the filter's side with this `dtype`.
    pub(super) fn elements(&self, spec: &CodecSpec) -> Result<FilterElements, ChainError> {
        match self {
            Self::Number(dtype) => FilterElements::from_dtype(spec, *dtype),
            Self::Time { data_type, order } => FilterElements::new(spec, data_type.clone(), order.clone()),
        }
    }
}

/// True if it is a datetime type.
pub(super) fn is_datetime(data_type: &DataType) -> bool {
    data_type.name().starts_with("numpy.datetime64[")
}

/// True if it is a timedelta type.
pub(super) fn is_timedelta(data_type: &DataType) -> bool {
    data_type.name().starts_with("numpy.timedelta64[")
}

impl<'de> Deserialize<'de> for FilterDtype {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if let Some(dtype) = Dtype::parse(&text) {
            return Ok(Self::Number(dtype));
        }
        let shown: String = text.chars().take(64).collect();
        let parsed = parse_v2(&Value::from(text), V2Context::default()).ok();
        let time = parsed.and_then(|(data_type, order)| Self::from_time_type(data_type, order));
        time.ok_or_else(|| D::Error::custom(format!("{shown} is not a dtype of numbers or times")))
    }
}

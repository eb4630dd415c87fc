//! The colour of each value.

use serde::{Serialize, Serializer};
use zarrd_codec::Elements;
use zarrd_meta::data_type::DataType;
use zarrd_wire::{
    picture::{ColorMap, Limits, Rgba, Scale},
    query::PictureQuery,
};

use super::{
    color_maps,
    limits::FoundLimits,
    thresholds::{COLORS, Spread, thresholds},
    values::{bytes_of, code_of, for_each_value, value_of_code, wide_integers},
};

/// The number of the colour of values below the limits.
const UNDER: u16 = 256;
/// The number of the colour of values above the limits.
const OVER: u16 = 257;
/// The number of the colour of NaN.
const NAN: u16 = 258;
/// The default linear part of the scale `symlog`, as a part of the limit with the greater magnitude.
const LINEAR_PART: f64 = 1e-3;

/// The colours of a picture, and the values at which each begins.
#[derive(Clone, Debug)]
pub(super) struct Coloring {
    spread: Spread,
    limits: Limits,
    /// The threshold of each colour of the map.
    thresholds: Vec<f64>,
    /// The colours of the map, and those of values below and above the limits and of NaN.
    pub(super) colors: Vec<Rgba>,
}

/// A [`Coloring`] of integers that `f64` cannot have exactly.
pub(super) struct IntegerSteps {
    thresholds: Vec<i128>,
    max: i128,
}

impl Coloring {
    /// The colouring with the limits that are given, or else were found. A found limit beyond the given one is equal to
    /// that.
    pub(super) fn new(picture: &PictureQuery, found: FoundLimits) -> Self {
        let (map, scale) = (picture.cmap.unwrap_or_default(), picture.scale.unwrap_or_default());
        let (min, max) = match (picture.min, picture.max) {
            (None, None) => (found.min, found.max),
            (Some(min), None) => (min, found.max.max(min)),
            (None, Some(max)) => (found.min.min(max), max),
            (Some(min), Some(max)) => (min, max),
        };
        let default_linthresh = match min.abs().max(max.abs()) * LINEAR_PART {
            linthresh if linthresh > 0.0 => linthresh,
            _ => 1.0,
        };
        let linthresh = picture.linthresh.unwrap_or(default_linthresh);
        let spread = Spread { scale, map, min, max, linthresh };
        let mut colors = color_maps::colors(map).to_vec();
        let [first, last] = [colors.first(), colors.last()].map(|color| color.copied().unwrap_or(Rgba::TRANSPARENT));
        colors.extend([picture.under.unwrap_or(first), picture.over.unwrap_or(last)]);
        colors.push(picture.nan.unwrap_or(Rgba::TRANSPARENT));
        Self { spread, limits: picture.limits.unwrap_or_default(), thresholds: thresholds(&spread), colors }
    }

    /// The number of the colour of a value.
    pub(super) fn color(&self, value: f64) -> u16 {
        if value.is_nan() {
            return NAN;
        }
        if value > self.spread.max {
            return OVER;
        }
        let reached = self.thresholds.partition_point(|&threshold| threshold <= value);
        reached.checked_sub(1).and_then(|level| u16::try_from(level).ok()).unwrap_or(UNDER)
    }

    /// Appends the number of each element's colour.
    pub(super) fn append_colors(&self, data_type: &DataType, elements: &Elements, out: &mut Vec<u16>) {
        if let Some(integers) = wide_integers(data_type, elements) {
            let steps = self.integer_steps();
            out.extend(integers.map(|integer| steps.color(integer)));
            return;
        }
        let bytes = bytes_of(elements);
        let size = data_type.fixed_size().unwrap_or(1).max(1);
        let codes = 1_usize << (8 * size.min(2));
        if size <= 2 && bytes.len() / size >= codes {
            let table: Vec<_> =
                (0..=u16::MAX).take(codes).map(|code| self.color(value_of_code(data_type, code))).collect();
            let color = |element| table.get(usize::from(code_of(element))).copied().unwrap_or_default();
            out.extend(bytes.chunks_exact(size).map(color));
            return;
        }
        for_each_value(data_type, elements, &mut |value| out.push(self.color(value)));
    }

    /// The colouring of integers.
    fn integer_steps(&self) -> IntegerSteps {
        // The casts saturate, far beyond all integers of 64 bits.
        let thresholds = self.thresholds.iter().map(|threshold| threshold.ceil() as i128).collect();
        IntegerSteps { thresholds, max: self.spread.max.floor() as i128 }
    }
}

impl IntegerSteps {
    /// The number of the colour of an integer.
    pub(super) fn color(&self, integer: i128) -> u16 {
        if integer > self.max {
            return OVER;
        }
        let reached = self.thresholds.partition_point(|&threshold| threshold <= integer);
        reached.checked_sub(1).and_then(|level| u16::try_from(level).ok()).unwrap_or(UNDER)
    }
}

/// The JSON of a colouring.
#[derive(Serialize)]
struct Description {
    cmap: &'static str,
    scale: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    linthresh: Option<f64>,
    limits: &'static str,
    min: f64,
    max: f64,
    thresholds: Vec<Threshold>,
    colors: Vec<String>,
    under: String,
    over: String,
    nan: String,
}

/// A threshold, which may be infinite.
struct Threshold(f64);

impl Serialize for Threshold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.is_finite() {
            true => serializer.serialize_f64(self.0),
            false => serializer.serialize_str("Infinity"),
        }
    }
}

impl Coloring {
    /// The colouring as JSON.
    pub(super) fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let color = |number: u16| self.colors.get(usize::from(number)).map(Rgba::to_string).unwrap_or_default();
        let Spread { scale, map, min, max, linthresh } = self.spread;
        serde_json::to_vec(&Description {
            cmap: ColorMap::name(map),
            scale: scale.name(),
            linthresh: (scale == Scale::Symlog).then_some(linthresh),
            limits: self.limits.name(),
            min,
            max,
            thresholds: self.thresholds.iter().copied().map(Threshold).collect(),
            colors: self.colors.iter().take(COLORS).map(Rgba::to_string).collect(),
            under: color(UNDER),
            over: color(OVER),
            nan: color(NAN),
        })
    }
}

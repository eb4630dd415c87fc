//! The parameters of pictures.

use std::str::FromStr;

use super::{QueryError, flag, name_of, shown, text};
use crate::picture::{ColorMap, Limits, Rgba, Scale};

/// The value with the first colour; what is less is under the limits.
pub const MIN: &str = "min";
/// The value with the last colour; what is greater is over the limits.
pub const MAX: &str = "max";
/// The colour map.
pub const CMAP: &str = "cmap";
/// The scale.
pub const SCALE: &str = "scale";
/// The magnitude up to which the scale `symlog` is linear.
pub const LINTHRESH: &str = "linthresh";
/// The source of limits that are not given.
pub const LIMITS: &str = "limits";
/// The colour of values under the limits.
pub const UNDER: &str = "under";
/// The colour of values over the limits.
pub const OVER: &str = "over";
/// The colour of NaN.
pub const NAN: &str = "nan";
/// Shows the last dimension as red, green and blue, and alpha if it has four.
pub const RGB: &str = "rgb";
/// Answers with the thresholds of the colours instead of the picture.
pub const THRESHOLDS: &str = "thresholds";

/// The names of the parameters of pictures.
pub const PICTURE_PARAMETERS: [&str; 11] =
    [MIN, MAX, CMAP, SCALE, LINTHRESH, LIMITS, UNDER, OVER, NAN, RGB, THRESHOLDS];

/// The parameters of a picture. Those that are `None` were not given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PictureQuery {
    /// The value with the first colour; finite, and positive for the scale `log`.
    pub min: Option<f64>,
    /// The value with the last colour; finite, and above `min` where both are given.
    pub max: Option<f64>,
    /// The colour map.
    pub cmap: Option<ColorMap>,
    /// The scale.
    pub scale: Option<Scale>,
    /// The magnitude up to which the scale `symlog` is linear; positive, and given for that scale only.
    pub linthresh: Option<f64>,
    /// The source of limits that are not given.
    pub limits: Option<Limits>,
    /// The colour of values under the limits; by default the first.
    pub under: Option<Rgba>,
    /// The colour of values over the limits; by default the last.
    pub over: Option<Rgba>,
    /// The colour of NaN; by default transparent.
    pub nan: Option<Rgba>,
    /// The treatment of the last dimension.
    pub channels: Channels,
    /// The form of the answer.
    pub answer: PictureAnswer,
}

/// The treatment of a picture's last dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Channels {
    /// It runs to the right; values have the colours of the map.
    #[default]
    Mapped,
    /// `rgb`: it has the channels of each pixel.
    Rgb,
    /// `channels=`: it runs to the right, and the first of three has channels whose colours are added. No parameter of
    /// these has it.
    Added,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PictureAnswer {
    /// The picture.
    #[default]
    Pixels,
    /// `thresholds`: a JSON object with the colours and the values at which each begins.
    Thresholds,
}

impl PictureQuery {
    /// Takes the parameters of pictures, and returns the others as they were encoded.
    pub(super) fn take<'q>(
        parameters: Vec<&'q str>,
        known: &'static [&'static str],
    ) -> Result<(Self, Vec<&'q str>), QueryError> {
        let mut values = [const { None }; PICTURE_PARAMETERS.len()];
        let mut rest = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            let (encoded, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let encoded = name_of(encoded);
            let found = PICTURE_PARAMETERS.into_iter().zip(&mut values).find(|(name, _)| encoded == *name);
            let Some((name, slot)) = found else {
                rest.push(parameter);
                continue;
            };
            let value = text(value).ok_or(QueryError::Invalid { name, expected: "is not percent-encoded UTF-8" })?;
            if slot.replace(value.into_owned()).is_some() {
                return Err(QueryError::Repeated { name, known });
            }
        }
        Ok((Self::of(values)?, rest))
    }

    /// Checks the values of [`PICTURE_PARAMETERS`].
    fn of(values: [Option<String>; PICTURE_PARAMETERS.len()]) -> Result<Self, QueryError> {
        let [min, max, cmap, scale, linthresh, limits, under, over, nan, rgb, thresholds] = values;
        let colour = |name, text| value_of::<Rgba>(name, text, "is RRGGBB or RRGGBBAA, in hexadecimal digits");
        let query = Self {
            min: number(MIN, min)?,
            max: number(MAX, max)?,
            cmap: cmap
                .map(|map| map.parse().map_err(|_| QueryError::UnknownColorMap { map: shown(&map) }))
                .transpose()?,
            scale: value_of(SCALE, scale, "is linear, log or symlog")?,
            linthresh: number(LINTHRESH, linthresh)?,
            limits: value_of(LIMITS, limits, "is minmax or robust")?,
            under: colour(UNDER, under)?,
            over: colour(OVER, over)?,
            nan: colour(NAN, nan)?,
            channels: if flag(RGB, rgb)? { Channels::Rgb } else { Channels::Mapped },
            answer: if flag(THRESHOLDS, thresholds)? { PictureAnswer::Thresholds } else { PictureAnswer::Pixels },
        };
        query.check()
    }

    /// The text of each parameter that is given.
    pub(super) fn rendered(&self) -> impl Iterator<Item = String> {
        let number = |name: &str, value: Option<f64>| value.map(|value| format!("{name}={value}"));
        let colour = |name: &str, value: Option<Rgba>| value.map(|value| format!("{name}={value}"));
        [
            number(MIN, self.min),
            number(MAX, self.max),
            self.cmap.map(|map| format!("{CMAP}={map}")),
            self.scale.map(|scale| format!("{SCALE}={scale}")),
            number(LINTHRESH, self.linthresh),
            self.limits.map(|limits| format!("{LIMITS}={limits}")),
            colour(UNDER, self.under),
            colour(OVER, self.over),
            colour(NAN, self.nan),
            (self.channels == Channels::Rgb).then(|| RGB.to_owned()),
            (self.answer == PictureAnswer::Thresholds).then(|| THRESHOLDS.to_owned()),
        ]
        .into_iter()
        .flatten()
    }

    /// The canonical text of the parameters.
    pub fn render(&self) -> String {
        self.rendered().collect::<Vec<_>>().join("&")
    }

    /// The name of the first parameter that is given.
    pub fn first_given(&self) -> Option<&'static str> {
        let first = self.rendered().next()?;
        let name = first.split_once('=').map_or(first.as_str(), |(name, _)| name);
        PICTURE_PARAMETERS.into_iter().find(|&known| known == name)
    }

    fn check(self) -> Result<Self, QueryError> {
        let invalid = |name, expected| Err(QueryError::Invalid { name, expected });
        let positive = |value: Option<f64>| value.is_none_or(|value| value > 0.0);
        if let (Some(min), Some(max)) = (self.min, self.max)
            && min >= max
        {
            return invalid(MAX, "is larger than \"min\"");
        }
        if self.linthresh.is_some() && self.scale != Some(Scale::Symlog) {
            return invalid(LINTHRESH, "is supported by scale=symlog only");
        }
        if !positive(self.linthresh) {
            return invalid(LINTHRESH, "is a positive number");
        }
        if self.scale == Some(Scale::Log) && !(positive(self.min) && positive(self.max)) {
            return invalid(
                if positive(self.min) { MAX } else { MIN },
                "is positive for scale=log; symlog has no bound",
            );
        }
        let plain = Self { channels: Channels::Mapped, ..self };
        match (self.channels, plain.first_given()) {
            (Channels::Rgb, Some(name)) => invalid(name, "has no meaning for \"rgb\""),
            _ => Ok(self),
        }
    }
}

fn value_of<T: FromStr>(
    name: &'static str,
    text: Option<String>,
    expected: &'static str,
) -> Result<Option<T>, QueryError> {
    text.map(|text| text.parse().map_err(|_| QueryError::Invalid { name, expected })).transpose()
}

fn number(name: &'static str, text: Option<String>) -> Result<Option<f64>, QueryError> {
    let expected = "is a finite number";
    match value_of::<f64>(name, text, expected)? {
        Some(value) if !value.is_finite() => Err(QueryError::Invalid { name, expected }),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ElementsQuery;
    use super::*;

    #[test]
    fn picture_queries_round_trip() {
        let full = PictureQuery {
            min: Some(-0.5),
            max: Some(1e300),
            cmap: Some(ColorMap::RdBu),
            scale: Some(Scale::Symlog),
            linthresh: Some(0.25),
            limits: Some(Limits::Robust),
            under: Some(Rgba([1, 2, 3, 255])),
            over: Some(Rgba::TRANSPARENT),
            nan: Some(Rgba([255; 4])),
            channels: Channels::Mapped,
            answer: PictureAnswer::Thresholds,
        };
        let rgb = PictureQuery { channels: Channels::Rgb, ..PictureQuery::default() };
        for picture in [full, rgb, PictureQuery::default()] {
            let query = ElementsQuery { picture, ..ElementsQuery::default() };
            assert_eq!(ElementsQuery::parse(&query.render()), Ok(query));
        }
        assert_eq!((full.first_given(), rgb.first_given()), (Some(MIN), Some(RGB)));
    }

    #[test]
    fn invalid_pictures_are_rejected() {
        for (bad, wrong) in [
            ("min=x", MIN),
            ("min=nan", MIN),
            ("max=inf", MAX),
            ("max=1e999", MAX),
            ("min=1&max=1", MAX),
            ("scale=sqrt", SCALE),
            ("scale=log&min=0", MIN),
            ("scale=log&max=-1", MAX),
            ("linthresh=1", LINTHRESH),
            ("scale=log&linthresh=1", LINTHRESH),
            ("scale=symlog&linthresh=0", LINTHRESH),
            ("limits=p5", LIMITS),
            ("under=red", UNDER),
            ("over=%23ffffff", OVER),
            ("nan=fff", NAN),
            ("rgb=1", RGB),
            ("thresholds=", ""),
            ("rgb&cmap=grey", CMAP),
            ("rgb&thresholds", THRESHOLDS),
        ] {
            let parsed = ElementsQuery::parse(bad);
            match wrong {
                "" => assert!(parsed.is_ok(), "{bad}"),
                wrong => {
                    assert!(
                        matches!(parsed, Err(QueryError::Invalid { name, .. }) if name == wrong),
                        "{bad}: {parsed:?}"
                    );
                }
            }
        }
        for (map, meant) in
            [("virids", "; did you mean \"viridis\"?"), ("rdbu", "; did you mean \"RdBu\"?"), ("jet", ""), ("", "")]
        {
            let error = crate::query::ElementsQuery::parse(&format!("cmap={map}")).unwrap_err();
            assert_eq!(error, QueryError::UnknownColorMap { map: map.to_owned() });
            let shown = error.to_string();
            assert!(shown.contains("RdBu_r") && shown.ends_with(&format!("not {map:?}{meant}")), "{shown}");
        }
    }
}

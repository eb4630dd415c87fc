//! Images of [OME-Zarr](https://ngff.openmicroscopy.org): what the attributes of a group say of its arrays.
//!
//! Read are versions 0.1 to 0.4, whose members are attributes themselves, and 0.5, which has them below `ome`. Members
//! that are not as the specification has them are left out, and so are those longer than 1 MiB.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{json::Json, limits::MAX_RANK};

/// The most levels and channels of an image that are read.
const MAX_LISTED: usize = 1024;

/// The longest text of the description of an image, and of its channels, that is parsed; parsed values take many
/// times the memory of their texts.
const MAX_MEMBER_BYTES: usize = 1 << 20;

/// An image: levels of one field of view, each coarser than the one before, and what their channels show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// The axes of each level, in the order of its dimensions.
    pub axes: Vec<Axis>,
    /// The levels, the finest first.
    pub levels: Vec<Level>,
    /// The channels, in the order of the channel axis.
    pub channels: Vec<Channel>,
}

/// An axis of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// Its name, such as `y`.
    pub name: String,
    /// `space`, `time`, `channel` or another kind.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The unit of its coordinates, such as `micrometer`.
    pub unit: Option<String>,
}

/// A level of an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// The path of its array below the group.
    pub path: String,
    /// The distance of neighbours along each axis, in its unit; empty if it is not known.
    pub scale: Vec<f64>,
    /// The coordinates of the first element, in the units of the axes; empty if they are not known.
    pub translation: Vec<f64>,
}

/// A channel of an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    /// What it shows, such as `DAPI`.
    pub label: Option<String>,
    /// The colour of its greatest values: red, green and blue.
    #[serde(with = "hexadecimal")]
    pub color: Option<[u8; 3]>,
    /// The values that are shown black and in full colour.
    pub window: Option<(f64, f64)>,
    /// True if it is shown at first.
    #[serde(rename = "active")]
    pub is_active: bool,
}

impl Image {
    /// The image that the attributes of a group describe; `None` if they describe none.
    pub fn of(attributes: &Json) -> Option<Self> {
        let ome = attributes.get("ome").unwrap_or_else(|| attributes.clone());
        let parsed = |json: Json| (json.len() <= MAX_MEMBER_BYTES).then(|| json.to_value().ok()).flatten();
        let image = &parsed(ome.get("multiscales")?.items().next()?)?;
        let levels: Vec<Level> = list(image.get("datasets")).filter_map(|dataset| level(dataset, image)).collect();
        if levels.is_empty() {
            return None;
        }
        let axes = list(image.get("axes")).take(MAX_RANK).map(axis).collect();
        let omero = ome.get("omero").and_then(parsed).unwrap_or_default();
        let channels = list(omero.get("channels")).map(channel).collect();
        Some(Self { axes, levels, channels })
    }

    /// The dimension of the channels; `None` if there is none, or the axes are not described.
    pub fn channel_dimension(&self) -> Option<usize> {
        let is_channel = |axis: &Axis| axis.kind.as_deref() == Some("channel");
        self.axes.iter().position(is_channel).or_else(|| self.axes.iter().position(|axis| axis.name == "c"))
    }
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten().take(MAX_LISTED)
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

/// An axis: in version 0.3 its name alone.
fn axis(axis: &Value) -> Axis {
    match axis {
        Value::String(name) => Axis { name: name.clone(), ..Axis::default() },
        axis => Axis {
            name: text(axis.get("name")).unwrap_or_default(),
            kind: text(axis.get("type")),
            unit: text(axis.get("unit")),
        },
    }
}

/// A level, whose transformation is followed by the one of the whole image.
fn level(dataset: &Value, image: &Value) -> Option<Level> {
    let path = text(dataset.get("path"))?;
    let (scale, translation) = transformation(dataset);
    let (outer_scale, outer_translation) = transformation(image);
    let both = |inner: &[f64], outer: &[f64], join: fn(f64, f64) -> f64| match (inner, outer) {
        (inner, []) => inner.to_vec(),
        ([], outer) => outer.to_vec(),
        (inner, outer) => inner.iter().zip(outer).map(|(inner, outer)| join(*inner, *outer)).collect(),
    };
    let scaled = both(&translation, if translation.is_empty() { &[] } else { &outer_scale }, |one, other| one * other);
    Some(Level {
        path,
        scale: both(&scale, &outer_scale, |one, other| one * other),
        translation: both(&scaled, &outer_translation, |one, other| one + other),
    })
}

/// The scale and the translation of a list of transformations.
fn transformation(of: &Value) -> (Vec<f64>, Vec<f64>) {
    let (mut scale, mut translation) = (Vec::new(), Vec::new());
    for step in list(of.get("coordinateTransformations")) {
        let numbers = |name: &str| list(step.get(name)).take(MAX_RANK).filter_map(Value::as_f64).collect();
        match step.get("type").and_then(Value::as_str) {
            Some("scale") => scale = numbers("scale"),
            Some("translation") => translation = numbers("translation"),
            _ => {}
        }
    }
    (scale, translation)
}

fn channel(channel: &Value) -> Channel {
    let window = channel.get("window");
    let limit = |name: &str, wider: &str| {
        let window = window?;
        window.get(name).or_else(|| window.get(wider)).and_then(Value::as_f64)
    };
    let limits = limit("start", "min").zip(limit("end", "max"));
    Channel {
        label: text(channel.get("label")),
        color: channel.get("color").and_then(color),
        window: limits.filter(|(start, end)| start.is_finite() && end.is_finite() && start < end),
        is_active: channel.get("active").and_then(Value::as_bool).unwrap_or(true),
    }
}

/// Colours as six hexadecimal digits.
mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(color: &Option<[u8; 3]>, serializer: S) -> Result<S::Ok, S::Error> {
        color.map(|[red, green, blue]| format!("{red:02x}{green:02x}{blue:02x}")).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[u8; 3]>, D::Error> {
        Ok(super::color(&Value::deserialize(deserializer)?))
    }
}

/// A colour: six hexadecimal digits, which some writers begin with `#`, or a number of OMERO, red in the highest byte of
/// four.
fn color(color: &Value) -> Option<[u8; 3]> {
    let bytes = match color {
        Value::String(text) => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            let is_color = digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            (u32::from_str_radix(digits, 16).ok().filter(|_| is_color)? << 8).to_be_bytes()
        }
        number => i32::try_from(number.as_i64()?).ok()?.to_be_bytes(),
    };
    let [red, green, blue, _] = bytes;
    Some([red, green, blue])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn image(attributes: &Value) -> Option<Image> {
        Image::of(&Json::compact(attributes))
    }

    fn attributes() -> Value {
        json!({
            "multiscales": [{
                "axes": [{"name": "c", "type": "channel"}, {"name": "y", "type": "space", "unit": "micrometer"},
                    {"name": "x", "type": "space"}],
                "datasets": [
                    {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 0.5, 0.5]}]},
                    {"path": "s1", "coordinateTransformations": [{"type": "scale", "scale": [1, 1, 1]},
                        {"type": "translation", "translation": [0, 0.25, 0.5]}]},
                ],
                "coordinateTransformations": [{"type": "scale", "scale": [1, 2, 3]}],
            }],
            "omero": {"channels": [
                {"label": "DAPI", "color": "0000FF", "window": {"start": 10, "end": 200, "min": 0, "max": 255}, "active": true},
                {"color": "#ff8000", "window": {"min": 0, "max": 4095}, "active": false},
                {"color": -16776961, "window": {"start": 5, "end": 5}},
                {},
            ]},
        })
    }

    #[test]
    fn both_places_of_the_members_are_read() {
        let found = image(&attributes()).unwrap();
        assert_eq!(image(&json!({"ome": attributes(), "multiscales": []})), Some(found.clone()));
        assert_eq!(found.channel_dimension(), Some(0));
        assert_eq!(found.axes[1].unit.as_deref(), Some("micrometer"));
        assert_eq!(found.levels[0], Level { path: "0".into(), scale: vec![1.0, 1.0, 1.5], translation: vec![] });
        assert_eq!(found.levels[1].scale, [1.0, 2.0, 3.0]);
        assert_eq!(found.levels[1].translation, [0.0, 0.5, 1.5]);
    }

    #[test]
    fn channels_have_what_is_valid() {
        let channels = image(&attributes()).unwrap().channels;
        let dapi = Channel {
            label: Some("DAPI".into()),
            color: Some([0, 0, 255]),
            window: Some((10.0, 200.0)),
            is_active: true,
        };
        assert_eq!(channels[0], dapi);
        assert_eq!((channels[1].color, channels[1].window), (Some([255, 128, 0]), Some((0.0, 4095.0))));
        assert!(!channels[1].is_active);
        assert_eq!((channels[2].color, channels[2].window), (Some([255, 0, 0]), None));
        assert_eq!(channels[3], Channel { is_active: true, ..Channel::default() });
    }

    #[test]
    fn members_longer_than_the_bound_are_left_out() {
        let long = Value::from(vec![0; MAX_MEMBER_BYTES / 2]);
        let mut of_channels = attributes();
        of_channels["omero"]["rdefs"] = long.clone();
        assert_eq!(image(&of_channels).unwrap().channels, []);
        let mut of_image = attributes();
        of_image["multiscales"][0]["metadata"] = long.clone();
        assert_eq!(image(&of_image), None);
        let mut of_another = attributes();
        of_another["multiscales"].as_array_mut().unwrap().push(long);
        assert_eq!(image(&of_another), image(&attributes()));
    }

    #[test]
    fn groups_without_levels_are_no_images() {
        for attributes in
            [json!({}), json!({"multiscales": []}), json!({"multiscales": [{"datasets": [{}]}]}), json!({"ome": 1})]
        {
            assert_eq!(image(&attributes), None, "{attributes}");
        }
        let names = image(&json!({"multiscales": [{"axes": ["t", "c"], "datasets": [{"path": "0"}]}]})).unwrap();
        assert_eq!(names.channel_dimension(), Some(1));
    }
}

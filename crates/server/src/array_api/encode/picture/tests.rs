//! Pictures: greys as they are, and pixels that are the colours of thresholds.

use proptest::prelude::*;
use serde_json::{Value, json};
use zarrd_meta::data_type::parse_v3;
use zarrd_wire::picture::{ColorMap, Limits, Rgba, Scale};

use super::super::tests::slice;
use super::*;

/// Encodes and decodes an image; returns its samples and the number of channels.
fn decoded_image(data_type: &str, shape: &[u64], elements: Vec<u8>, picture: PictureQuery) -> (Vec<u8>, usize) {
    let (front, back) = elements.split_at(elements.len() / 16 * 8);
    let buffers = [front, back].map(|elements| Elements::Fixed(elements.to_vec().into()));
    let file = encode(&slice(data_type, shape), &buffers, &picture).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    let mut samples = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut samples).unwrap();
    assert_eq!([u64::from(info.height), u64::from(info.width)], shape);
    (samples, info.color_type.samples())
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn limits(min: Option<f64>, max: Option<f64>) -> PictureQuery {
    PictureQuery { min, max, ..PictureQuery::default() }
}

#[test]
fn values_map_linearly_between_limits() {
    let values = floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(
        decoded_image("float32", &[2, 3], values.clone(), PictureQuery::default()),
        (vec![0, 51, 102, 153, 204, 255], 1)
    );
    let explicit = limits(Some(1.0), Some(3.0));
    assert_eq!(decoded_image("float32", &[3, 2], values.clone(), explicit), (vec![0, 0, 128, 255, 255, 255], 1));
    let only_max = limits(None, Some(10.0));
    assert_eq!(decoded_image("float32", &[1, 6], values, only_max).0, [0, 26, 51, 77, 102, 128]);
}

#[test]
fn nan_is_transparent_and_infinities_saturate() {
    let values = floats(&[f32::NAN, 1.0, f32::INFINITY, f32::NEG_INFINITY, 3.0, 2.0]);
    assert_eq!(
        decoded_image("float32", &[2, 3], values, PictureQuery::default()),
        (vec![0, 0, 0, 255, 255, 255, 0, 255, 255, 255, 128, 255], 2)
    );
    assert_eq!(decoded_image("float32", &[1, 2], floats(&[f32::NAN; 2]), PictureQuery::default()), (vec![0; 4], 2));
    let infinite = floats(&[f32::NEG_INFINITY, f32::INFINITY]);
    assert_eq!(decoded_image("float32", &[1, 2], infinite, PictureQuery::default()), (vec![0, 255], 1));
}

#[test]
fn equal_limits_are_a_threshold() {
    assert_eq!(decoded_image("float32", &[1, 3], floats(&[7.0; 3]), PictureQuery::default()), (vec![0; 3], 1));
    assert_eq!(
        decoded_image("bool", &[2, 4], vec![1, 0, 1, 1, 1, 1, 1, 1], PictureQuery::default()).0,
        [255, 0, 255, 255, 255, 255, 255, 255]
    );
    assert_eq!(decoded_image("bool", &[1, 8], vec![1; 8], PictureQuery::default()).0, [255; 8]);
    // The limit that is given lies outside the range of the values, and is the other one too.
    let below = limits(None, Some(5.0));
    assert_eq!(decoded_image("float32", &[1, 2], floats(&[7.0, 8.0]), below).0, [255, 255]);
}

#[test]
fn range_may_overflow() {
    let values: Vec<u8> = [f64::MIN, 0.0, f64::MAX].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(decoded_image("float64", &[1, 3], values, PictureQuery::default()).0, [0, 128, 255]);
}

#[test]
fn missing_elements_are_an_error() {
    let buffers = [Elements::Fixed(vec![0; 5].into())];
    let result = encode(&slice("uint8", &[2, 3]), &buffers, &PictureQuery::default());
    assert!(matches!(result, Err(EncodeError::Count { expected: 6, found: 5 })));
}

/// The colours of the pixels of a file.
fn rgba(file: Vec<u8>) -> Vec<Rgba> {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::ALPHA);
    let mut reader = decoder.read_info().unwrap();
    let mut samples = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut samples).unwrap();
    let grey = |pixel: &[u8]| Rgba([pixel[0], pixel[0], pixel[0], pixel[1]]);
    match info.color_type.samples() {
        2 => samples.chunks(2).map(grey).collect(),
        _ => samples.chunks(4).map(|pixel| Rgba(pixel.try_into().unwrap())).collect(),
    }
}

/// An element, exactly.
#[derive(Clone, Copy, Debug)]
enum Exact {
    Integer(i128),
    Float(f64),
}

impl Exact {
    fn of(data_type: &str, element: &[u8]) -> Self {
        let wide = |bytes: &[u8]| bytes.try_into().unwrap();
        match data_type {
            "int64" => Self::Integer(i64::from_le_bytes(wide(element)).into()),
            "uint64" => Self::Integer(u64::from_le_bytes(wide(element)).into()),
            _ => Self::Float(parse_v3(&json!(data_type)).unwrap().to_f64(element).unwrap()),
        }
    }

    /// True if the element is not below a limit, by arithmetic of integers where both are.
    fn reaches(self, limit: f64) -> bool {
        match self {
            Self::Float(value) => value >= limit,
            Self::Integer(_) if limit == f64::INFINITY => false,
            Self::Integer(value) if limit.fract() == 0.0 => value >= limit as i128,
            Self::Integer(value) => value as f64 >= limit,
        }
    }

    fn exceeds(self, limit: f64) -> bool {
        match self {
            Self::Float(value) => value > limit,
            Self::Integer(value) if limit.fract() == 0.0 => value > limit as i128,
            Self::Integer(value) => value as f64 > limit,
        }
    }
}

/// The colour of an element as a page finds it in the JSON of the thresholds.
fn looked_up(element: Exact, colors: &Value) -> Rgba {
    let color = |value: &Value| value.as_str().unwrap().parse().unwrap();
    let number = |value: &Value| value.as_f64().unwrap_or(f64::INFINITY);
    if matches!(element, Exact::Float(value) if value.is_nan()) {
        return color(&colors["nan"]);
    }
    if element.exceeds(number(&colors["max"])) {
        return color(&colors["over"]);
    }
    let thresholds = colors["thresholds"].as_array().unwrap();
    assert_eq!((thresholds.len(), &thresholds[0]), (256, &colors["min"]));
    match thresholds.iter().rposition(|threshold| element.reaches(number(threshold))) {
        Some(level) => color(&colors["colors"][level]),
        None => color(&colors["under"]),
    }
}

fn numbers() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![2 => Just(None), 3 => (-1e4..1e4_f64).prop_map(Some), 1 => any::<f32>().prop_map(|value| Some(value.into()))]
}

fn color() -> impl Strategy<Value = Option<Rgba>> {
    prop::option::of(any::<[u8; 4]>().prop_map(Rgba))
}

fn pictures() -> impl Strategy<Value = PictureQuery> {
    let names = (
        prop::option::of(prop::sample::select(ColorMap::ALL)),
        prop::option::of(prop::sample::select(Scale::ALL)),
        prop::option::of(prop::sample::select(Limits::ALL)),
    );
    let picture = (names, numbers(), numbers(), prop::option::of(1e-3..1e3_f64), [color(), color(), color()]);
    picture.prop_map(|((cmap, scale, limits), min, max, linthresh, [under, over, nan])| {
        let positive = |limit: f64| if scale == Some(Scale::Log) { limit.abs() + 1e-3 } else { limit };
        let (min, max) =
            (min.filter(|min| min.is_finite()).map(positive), max.filter(|max| max.is_finite()).map(positive));
        let max = max.filter(|&max| min.is_none_or(|min| min < max));
        let linthresh = linthresh.filter(|_| scale == Some(Scale::Symlog));
        PictureQuery { min, max, cmap, scale, linthresh, limits, under, over, nan, ..PictureQuery::default() }
    })
}

/// Elements of a type: any bytes, or numbers close to each other.
fn elements() -> impl Strategy<Value = (&'static str, u64, Vec<u8>)> {
    let types = [
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
        "float32", "float64",
    ];
    (prop::sample::select(types.to_vec()), 1..400_u64, any::<u64>(), any::<bool>()).prop_map(
        |(name, count, seed, any)| {
            let size = parse_v3(&json!(name)).unwrap().fixed_size().unwrap();
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 11
            };
            let element = |_| -> Vec<u8> {
                let word = next();
                match name {
                    "bool" => vec![u8::from(word % 2 == 1)],
                    "float64" if !any => ((word % 2_000_000) as f64 / 100.0 - 1e4).to_le_bytes().to_vec(),
                    "float32" if !any => ((word % 2_000_000) as f32 / 100.0 - 1e4).to_le_bytes().to_vec(),
                    // Integers that f64 does not have.
                    "int64" | "uint64" if !any => ((1 << 62) | (word % 3000)).to_le_bytes().to_vec(),
                    _ => (word.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes()[..size].to_vec(),
                }
            };
            (name, count, (0..count).flat_map(element).collect())
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn pixels_are_the_colors_of_thresholds((data_type, count, bytes) in elements(), picture in pictures()) {
        let slice = slice(data_type, &[1, count]);
        let size = slice.data_type.fixed_size().unwrap();
        let (front, back) = bytes.split_at(bytes.len() / size / 2 * size);
        let buffers = [front, back].map(|elements| Elements::Fixed(elements.to_vec().into()));
        let described = PictureQuery { answer: PictureAnswer::Thresholds, ..picture };
        let colors: Value = serde_json::from_slice(&encode(&slice, &buffers, &described).unwrap()).unwrap();
        let pixels = rgba(encode(&slice, &buffers, &picture).unwrap());
        for (element, pixel) in bytes.chunks(size).zip(pixels) {
            let element = Exact::of(data_type, element);
            let expected = looked_up(element, &colors);
            prop_assert_eq!(pixel, expected, "{:?} in {}", element, colors);
        }
    }
}

#[test]
fn tables_of_small_types_give_the_same_colors() {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for data_type in ["int16", "uint16", "float16", "bfloat16"] {
        let picture =
            PictureQuery { cmap: Some(ColorMap::Viridis), min: Some(-50.0), max: Some(900.5), ..Default::default() };
        let at_once = encode(&slice(data_type, &[256, 256]), &[Elements::Fixed(all.clone().into())], &picture).unwrap();
        let parts: Vec<_> = all.chunks(2000).map(|part| Elements::Fixed(part.to_vec().into())).collect();
        assert_eq!(
            rgba(at_once),
            rgba(encode(&slice(data_type, &[256, 256]), &parts, &picture).unwrap()),
            "{data_type}"
        );
    }
}

#[test]
fn limits_are_robust_or_given() {
    let described = |data_type, bytes: Vec<u8>, picture: PictureQuery| {
        let picture = PictureQuery { answer: PictureAnswer::Thresholds, ..picture };
        let count = bytes.len() as u64 / parse_v3(&json!(data_type)).unwrap().fixed_size().unwrap() as u64;
        let colors = encode(&slice(data_type, &[count]), &[Elements::Fixed(bytes.into())], &picture).unwrap();
        let colors: Value = serde_json::from_slice(&colors).unwrap();
        (colors["min"].as_f64().unwrap(), colors["max"].as_f64().unwrap())
    };
    let robust = PictureQuery { limits: Some(Limits::Robust), ..PictureQuery::default() };
    // numpy.percentile(range(256), [2, 98]), and of the same and two infinities.
    assert_eq!(described("uint8", (0..=255).collect(), robust), (5.1000000000000005, 249.9));
    let floats: Vec<f32> = (0_u8..=255).map(f32::from).chain([f32::INFINITY, f32::NAN]).collect();
    assert_eq!(described("float32", self::floats(&floats), robust), (5.1000000000000005, 249.9));
    assert_eq!(described("float32", self::floats(&[f32::NAN]), robust), (0.0, 0.0));
    let log = PictureQuery { scale: Some(Scale::Log), ..PictureQuery::default() };
    assert_eq!(described("float32", self::floats(&[-1.0, 0.0, 0.5, 8.0]), log), (0.5, 8.0));
    assert_eq!(described("int8", vec![0, 255], log), (1.0, 1.0), "nothing is positive");
    let only_max = PictureQuery { max: Some(-3.0), ..PictureQuery::default() };
    assert_eq!(described("int8", vec![0, 255], only_max), (-3.0, -3.0));
}

#[test]
fn channels_are_pixels() {
    let picture = PictureQuery { channels: Channels::Rgb, ..PictureQuery::default() };
    let bytes: Vec<u8> = (0..24).collect();
    for (shape, channels) in [(&[2, 4, 3][..], 3), (&[3, 2, 4], 4)] {
        let file = encode(&slice("uint8", shape), &[Elements::Fixed(bytes.clone().into())], &picture).unwrap();
        let expected: Vec<_> = bytes
            .chunks(channels)
            .map(|pixel| Rgba([pixel[0], pixel[1], pixel[2], pixel.get(3).copied().unwrap_or(255)]))
            .collect();
        assert_eq!(rgba(file), expected);
    }
    let missing = encode(&slice("uint8", &[2, 4, 3]), &[Elements::Fixed(bytes[..21].to_vec().into())], &picture);
    assert!(matches!(missing, Err(EncodeError::Count { expected: 24, found: 21 })));
    for (data_type, shape) in
        [("int8", &[2, 2, 3][..]), ("uint8", &[2, 2]), ("uint8", &[2, 2, 5]), ("uint8", &[0, 2, 3])]
    {
        assert!(unsupported_reason(&slice(data_type, shape), &picture).is_some(), "{data_type} {shape:?}");
    }
}

#[test]
fn few_colors_have_a_palette() {
    let color_type = |bytes: Vec<u8>, picture: PictureQuery| {
        let shape = [1, bytes.len() as u64];
        let file = encode(&slice("uint8", &shape), &[Elements::Fixed(bytes.into())], &picture).unwrap();
        png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap().info().color_type
    };
    let map = PictureQuery { cmap: Some(ColorMap::Viridis), ..PictureQuery::default() };
    assert_eq!(color_type((0..=255).collect(), map), png::ColorType::Indexed);
    let more = PictureQuery { min: Some(0.5), max: Some(250.0), under: Some(Rgba([1, 1, 2, 255])), ..map };
    assert_eq!(color_type((0..=255).collect(), more), png::ColorType::Indexed);
    assert_eq!(color_type((0..=255).collect(), PictureQuery::default()), png::ColorType::Grayscale);
}

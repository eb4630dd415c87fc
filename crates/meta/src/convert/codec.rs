//! Conversion of bytes-to-bytes codecs between numcodecs and v3.

use serde_json::{Map, Value, json};

use crate::{
    codecs::{CodecSpec, Namespace},
    documents::members,
    text::truncated,
};

/// The bytes-to-bytes codecs of numcodecs that zarr-python 3 supports.
const NUMCODECS: &[&str] = &[
    "adler32",
    "blosc",
    "bz2",
    "crc32",
    "crc32c",
    "fletcher32",
    "gzip",
    "jenkins_lookup3",
    "lz4",
    "lzma",
    "shuffle",
    "zlib",
    "zstd",
];

/// The maximum level of zstd; numcodecs treats higher ones as this level.
const MAX_ZSTD_LEVEL: i64 = 22;

/// The maximum element size of blosc; it treats larger elements as bytes.
const MAX_BLOSC_TYPESIZE: usize = 255;

/// The shuffles of blosc in v3; numcodecs uses the index.
const SHUFFLES: [&str; 3] = ["noshuffle", "shuffle", "bitshuffle"];

/// Converts a codec of numcodecs to v3, for items of `item_size` bytes: to a registered codec if that can represent the
/// whole configuration, otherwise to `numcodecs.*`.
pub(super) fn to_v3(codec: &CodecSpec, item_size: usize) -> Result<CodecSpec, String> {
    let configuration = &codec.configuration;
    let v3_configuration = match codec.name.as_str() {
        "gzip" => gzip(configuration),
        "zstd" => zstd(configuration),
        "blosc" => blosc(configuration, item_size),
        "crc32c" if is_at_end(configuration) => Some(Map::new()),
        name if NUMCODECS.contains(&name) => None,
        name => return Err(format!("is the codec {}, for which v3 has no name", truncated(name))),
    };
    Ok(v3_configuration.map_or_else(|| codec.clone(), |configuration| CodecSpec::v3(&codec.name, configuration)))
}

/// Converts a bytes-to-bytes codec of v3 to numcodecs, for items of `item_size` bytes. The flag is true if its
/// `typesize` is lost, which numcodecs derives itself.
pub(super) fn to_numcodecs(codec: &CodecSpec, item_size: usize) -> Result<(CodecSpec, bool), String> {
    if codec.namespace == Namespace::Numcodecs {
        return Ok((codec.clone(), false));
    }
    let mut typesize_is_lost = false;
    let configuration = match codec.name.as_str() {
        "gzip" => gzip_from_v3(&codec.configuration),
        "zstd" => zstd_from_v3(&codec.configuration),
        "blosc" => blosc_from_v3(&codec.configuration, item_size).map(|(configuration, lost)| {
            typesize_is_lost = lost;
            configuration
        }),
        "crc32c" => check_members(&codec.configuration, &[]).map(|()| Map::new()),
        name => return Err(format!("is the codec {}, which numcodecs has not", truncated(name))),
    };
    let configuration = configuration.ok_or_else(|| format!("configures {} as numcodecs cannot", codec.name))?;
    Ok((CodecSpec::numcodecs(&codec.name, configuration), typesize_is_lost))
}

/// Fails if the configuration has other members.
fn check_members(configuration: &Map<String, Value>, known: &[&str]) -> Option<()> {
    configuration.keys().all(|name| known.contains(&name.as_str())).then_some(())
}

/// An integer in a range; `default` if it is missing.
fn integer(
    configuration: &Map<String, Value>,
    name: &str,
    default: i64,
    range: std::ops::RangeInclusive<i64>,
) -> Option<i64> {
    let value = configuration.get(name).map_or(Some(default), Value::as_i64)?;
    range.contains(&value).then_some(value)
}

fn flag(configuration: &Map<String, Value>, name: &str) -> Option<bool> {
    configuration.get(name).map_or(Some(false), Value::as_bool)
}

fn gzip(configuration: &Map<String, Value>) -> Option<Map<String, Value>> {
    check_members(configuration, &["level"])?;
    Some(members([("level", json!(integer(configuration, "level", 1, 0..=9)?))]))
}

fn gzip_from_v3(configuration: &Map<String, Value>) -> Option<Map<String, Value>> {
    check_members(configuration, &["level"])?;
    Some(members([("level", json!(integer(configuration, "level", 5, 0..=9)?))]))
}

fn zstd(configuration: &Map<String, Value>) -> Option<Map<String, Value>> {
    check_members(configuration, &["level", "checksum"])?;
    let level = integer(configuration, "level", 0, -131_072..=i64::MAX)?.min(MAX_ZSTD_LEVEL);
    Some(members([("level", json!(level)), ("checksum", json!(flag(configuration, "checksum")?))]))
}

fn zstd_from_v3(configuration: &Map<String, Value>) -> Option<Map<String, Value>> {
    check_members(configuration, &["level", "checksum"])?;
    let mut numcodecs = members([("level", json!(integer(configuration, "level", 0, -131_072..=MAX_ZSTD_LEVEL)?))]);
    // Older versions of numcodecs reject the member.
    if flag(configuration, "checksum")? {
        numcodecs.insert("checksum".to_owned(), json!(true));
    }
    Some(numcodecs)
}

fn is_at_end(configuration: &Map<String, Value>) -> bool {
    let location = configuration.get("location").unwrap_or(&Value::Null);
    check_members(configuration, &["location"]).is_some() && (location.is_null() || location == "end")
}

fn blosc(configuration: &Map<String, Value>, item_size: usize) -> Option<Map<String, Value>> {
    check_members(configuration, &["cname", "clevel", "shuffle", "blocksize", "typesize"])?;
    let item_size = match configuration.get("typesize") {
        None | Some(Value::Null) => item_size,
        Some(size) => usize::try_from(size.as_u64().filter(|size| *size > 0)?).ok()?,
    };
    // numcodecs derives the shuffle from the element size before blosc limits it.
    let by_size = if item_size == 1 { 2 } else { 1 };
    let shuffle = match integer(configuration, "shuffle", 1, -1..=2)? {
        -1 => by_size,
        shuffle => shuffle,
    };
    Some(members([
        ("typesize", json!(blosc_typesize(item_size))),
        ("cname", json!(configuration.get("cname").map_or(Some("lz4"), Value::as_str)?)),
        ("clevel", json!(integer(configuration, "clevel", 5, 0..=9)?)),
        ("shuffle", json!(SHUFFLES.get(usize::try_from(shuffle).ok()?)?)),
        ("blocksize", json!(integer(configuration, "blocksize", 0, 0..=i64::MAX)?)),
    ]))
}

fn blosc_from_v3(configuration: &Map<String, Value>, item_size: usize) -> Option<(Map<String, Value>, bool)> {
    check_members(configuration, &["cname", "clevel", "shuffle", "blocksize", "typesize"])?;
    let typesize = match configuration.get("typesize") {
        None | Some(Value::Null) => item_size,
        Some(size) => usize::try_from(size.as_u64().filter(|size| *size > 0)?).ok()?,
    };
    let shuffle = match configuration.get("shuffle") {
        None | Some(Value::Null) => {
            if typesize == 1 {
                2
            } else {
                1
            }
        }
        Some(name) => SHUFFLES.iter().position(|shuffle| name == shuffle)?,
    };
    let numcodecs = members([
        ("cname", json!(configuration.get("cname").map_or(Some("zstd"), Value::as_str)?)),
        ("clevel", json!(integer(configuration, "clevel", 5, 0..=9)?)),
        ("shuffle", json!(shuffle)),
        ("blocksize", json!(integer(configuration, "blocksize", 0, 0..=i64::MAX)?)),
    ]);
    Some((numcodecs, blosc_typesize(typesize) != blosc_typesize(item_size)))
}

fn blosc_typesize(item_size: usize) -> usize {
    if (1..=MAX_BLOSC_TYPESIZE).contains(&item_size) { item_size } else { 1 }
}

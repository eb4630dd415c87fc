//! What is told of a node, for people.

use indicatif::BinaryBytes;
use meta::json::{Json, Member};
use serde_json::{Map, Value};

use super::{ArrayReport, GroupReport, KindReport, Report, stored::Stored};
use crate::hierarchy::{ArrayCard, Kind, counted, shown, tuple};

/// How wide the names of what is told are.
const NAMES: usize = 14;

/// How many broken members are told one by one.
const SHOWN: usize = 10;

/// Lines, with the names of what is told beside it.
#[derive(Default)]
struct Lines(Vec<String>);

impl Lines {
    /// Tells something, unless there is nothing to tell. What has several lines is told below each other.
    fn tell(&mut self, name: &str, what: impl AsRef<str>) {
        let mut name = name;
        for line in what.as_ref().lines().filter(|line| !line.is_empty()) {
            self.0.push(format!("{name:<NAMES$}{}", shown(line)));
            name = "";
        }
    }
}

impl Report {
    /// The lines in which it is told.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Lines::default();
        let kind = match (self.card.kind, self.implicit) {
            (Kind::Array, _) => "array",
            (Kind::Group, false) => "group",
            (Kind::Group, true) => "implicit group",
            (Kind::Broken, _) => "broken",
        };
        lines.tell("path", &self.card.path);
        lines.tell("kind", kind);
        lines.tell("dialect", self.card.dialect);
        lines.tell("also as", self.also_as.join(", "));
        match (&self.of, &self.card.array) {
            (KindReport::Array(array), Some(card)) => array.tell(card, &mut lines),
            (KindReport::Group(group), _) => group.tell(&mut lines),
            (KindReport::Array(_), None) => {}
        }
        let extensions: Vec<String> = self.extensions.iter().map(named).collect();
        lines.tell("extensions", extensions.join("\n"));
        let links = self.links.iter().map(|link| {
            let resolved = if link.resolved == "array" { "found" } else { link.resolved };
            format!("{} {resolved} ({})", link.path, link.extension)
        });
        lines.tell("links", links.collect::<Vec<_>>().join("\n"));
        if self.attributes.members().next().is_some() {
            lines.tell("attributes", pretty(&self.attributes));
        }
        let losses = self.losses.iter().map(|loss| format!("{} {}: {}", loss.path, loss.pointer, loss.property));
        lines.tell("not in v3", losses.collect::<Vec<_>>().join("\n"));
        lines.tell("version", self.version.as_deref().unwrap_or_default());
        lines.0
    }
}

impl ArrayReport {
    fn tell(&self, card: &ArrayCard, lines: &mut Lines) {
        lines.tell("shape", tuple(&card.shape));
        if self.dimension_names.iter().any(Option::is_some) {
            let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
            lines.tell("dimensions", self.dimension_names.iter().map(name).collect::<Vec<_>>().join(", "));
        }
        if let Some(origin) = &self.origin {
            lines.tell("view from", tuple(origin));
        }
        lines.tell("data type", &card.data_type);
        lines.tell("fill value", self.fill_value.as_ref().map(Value::to_string).unwrap_or_default());
        lines.tell("size", self.bytes.map(|bytes| BinaryBytes(bytes).to_string()).unwrap_or_default());
        lines.tell("chunks", card.chunking());
        let thing = if card.shards.is_some() { "shard" } else { "chunk" };
        let stored = self.stored.as_ref().map(|stored| stored.told(self.num_chunks, thing));
        lines.tell("stored", stored.unwrap_or_default());
        let mut codecs = Vec::new();
        self.pipeline.iter().for_each(|codec| chain(codec, 0, &mut codecs));
        lines.tell("codecs", codecs.join("\n"));
    }
}

impl Stored {
    fn told(&self, places: Option<u64>, thing: &str) -> String {
        let more = if self.complete { "" } else { "more than " };
        let of = places.map(|places| format!(" of {}", indicatif::HumanCount(places))).unwrap_or_default();
        format!("{more}{}{of}, {}", counted(self.chunks, thing), BinaryBytes(self.bytes))
    }
}

impl GroupReport {
    fn tell(&self, lines: &mut Lines) {
        let others = match self.other_dialects {
            0 => String::new(),
            others => format!(", {} of other dialects", indicatif::HumanCount(others)),
        };
        lines.tell("members", format!("{}, {}{others}", counted(self.groups, "group"), counted(self.arrays, "array")));
        let broken = self
            .broken
            .iter()
            .map(|broken| format!("{} {}: {}", broken.path, broken.problem.key, broken.problem.reason));
        lines.tell("broken", broken.take(SHOWN).collect::<Vec<_>>().join("\n"));
        if let Some(more) = self.broken.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            lines.tell("", format!("and {} more", indicatif::HumanCount(more as u64)));
        }
        lines.tell("consolidated", if self.consolidated { "yes" } else { "no" });
        if !self.only_consolidated.is_empty() {
            let more = if self.more_consolidated { ", and more" } else { "" };
            let only = self.only_consolidated.join(", ");
            lines.tell("", format!("only in consolidated metadata: {only}{more}"));
        }
    }
}

/// A codec, or an extension: its name and configuration.
fn named(named: &Value) -> String {
    let name = named.get("name").unwrap_or(named);
    let name = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
    match named.get("configuration").and_then(Value::as_object) {
        Some(configuration) if !configuration.is_empty() => format!("{name} {}", settings(configuration)),
        _ => name,
    }
}

/// A codec, and those that shards have inside below it.
fn chain(codec: &Value, depth: usize, lines: &mut Vec<String>) {
    const INNER: &str = "codecs";
    let indent = "  ".repeat(depth);
    let Some(inner) = codec.get("configuration").and_then(|configuration| configuration.get(INNER)?.as_array()) else {
        lines.push(format!("{indent}{}", named(codec)));
        return;
    };
    let mut outer = codec.clone();
    if let Some(configuration) = outer.get_mut("configuration").and_then(Value::as_object_mut) {
        configuration.remove(INNER);
        configuration.remove("index_codecs");
    }
    lines.push(format!("{indent}{}", named(&outer)));
    // Documents are not nested deeper than they are read.
    inner.iter().for_each(|codec| chain(codec, depth + 1, lines));
}

fn settings(configuration: &Map<String, Value>) -> String {
    let all: Vec<_> = configuration.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("({})", all.join(", "))
}

/// Attributes, each on a line unless it is large.
fn pretty(attributes: &Json) -> String {
    let name = |member: &Member| member.name().unwrap_or_else(|| member.quoted_name().as_str().to_owned());
    let widths = attributes.members().map(|member| name(&member).chars().count());
    let width = widths.max().unwrap_or_default().min(24);
    let line = |member: Member| format!("{:<width$}  {}", name(&member), member.value.compacted().as_str());
    attributes.members().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn codecs_of_shards_are_below_them() {
        let mut lines = Vec::new();
        let sharding = json!({"name": "sharding_indexed", "configuration": {
            "chunk_shape": [2, 2], "index_codecs": ["bytes"],
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {}}],
        }});
        chain(&sharding, 0, &mut lines);
        assert_eq!(lines, ["sharding_indexed (chunk_shape: [2,2])", "  bytes (endian: \"little\")", "  zstd"]);
    }

    #[test]
    fn what_is_stored() {
        let stored = |chunks, complete| Stored { chunks, bytes: 2048, complete };
        assert_eq!(stored(1, true).told(Some(4), "chunk"), "1 chunk of 4, 2.00 KiB");
        assert_eq!(stored(2000, false).told(None, "shard"), "more than 2,000 shards, 2.00 KiB");
    }

    #[test]
    fn attributes_are_below_each_other() {
        let attributes = json!({"a": 1, "unit": {"x": ["mV"]}});
        assert_eq!(pretty(&Json::compact(&attributes)), "a     1\nunit  {\"x\":[\"mV\"]}");
        let mut lines = Lines::default();
        lines.tell("attributes", "a  1\nb  \u{1b}");
        lines.tell("nothing", "");
        assert_eq!(lines.0, ["attributes    a  1", "              b  \\u{1b}"]);
    }
}

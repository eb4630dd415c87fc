//! Text output of `zarrd info`.

use indicatif::BinaryBytes;
use serde_json::{Map, Value};
use zarrd_client::LinkTarget;
use zarrd_meta::json::{Json, Member};

use super::{ArrayReport, GroupReport, NodeDetails, Report, stored::StoredChunks};
use crate::hierarchy::{ArraySummary, NodeKind, escape_control, quantity, tuple};

/// Width of the column of names.
const NAME_WIDTH: usize = 14;

/// Maximum number of broken members that are listed.
const MAX_LISTED_BROKEN: usize = 10;

/// Lines with a name and a value.
#[derive(Default)]
struct Lines(Vec<String>);

impl Lines {
    /// Adds a value, unless it is empty. The name is in the first line of the value only.
    fn add(&mut self, name: &str, value: impl AsRef<str>) {
        let mut name = name;
        for line in value.as_ref().lines().filter(|line| !line.is_empty()) {
            self.0.push(format!("{name:<NAME_WIDTH$}{}", escape_control(line)));
            name = "";
        }
    }
}

impl Report {
    /// The report as lines of text.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Lines::default();
        let kind = match (self.summary.kind, self.implicit) {
            (NodeKind::Array, _) => "array",
            (NodeKind::Group, false) => "group",
            (NodeKind::Group, true) => "implicit group",
            (NodeKind::Broken, _) => "broken",
            (NodeKind::Prefix, _) => "prefix",
        };
        lines.add("path", &self.summary.path);
        lines.add("kind", kind);
        lines.add("dialect", self.summary.dialect);
        lines.add("also as", self.also_as.join(", "));
        lines.add("they differ", self.dialects_differ.unwrap_or_default());
        match (&self.details, &self.summary.array) {
            (NodeDetails::Array(array), Some(summary)) => array.add_lines(summary, &mut lines),
            (NodeDetails::Group(group), _) => group.add_lines(&mut lines),
            (NodeDetails::Array(_), None) => {}
        }
        let extensions: Vec<String> = self.extensions.iter().map(named).collect();
        lines.add("extensions", extensions.join("\n"));
        let links = self.links.iter().map(|link| {
            let target = match link.resolved {
                LinkTarget::Array => "found",
                LinkTarget::Missing => "missing",
            };
            format!("{} {target} ({})", link.path, link.extension)
        });
        lines.add("links", links.collect::<Vec<_>>().join("\n"));
        if self.attributes.members().next().is_some() {
            lines.add("attributes", pretty(&self.attributes));
        }
        let losses = self.losses.iter().map(|loss| format!("{} {}: {}", loss.path, loss.pointer, loss.property));
        lines.add("not in v3", losses.collect::<Vec<_>>().join("\n"));
        lines.add("version", self.version.as_deref().unwrap_or_default());
        lines.0
    }
}

impl ArrayReport {
    fn add_lines(&self, summary: &ArraySummary, lines: &mut Lines) {
        lines.add("shape", tuple(&summary.shape));
        if self.dimension_names.iter().any(Option::is_some) {
            let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
            lines.add("dimensions", self.dimension_names.iter().map(name).collect::<Vec<_>>().join(", "));
        }
        if let Some(origin) = &self.origin {
            lines.add("view from", tuple(origin));
        }
        lines.add("data type", &summary.data_type);
        lines.add("fill value", self.fill_value.as_ref().map(Value::to_string).unwrap_or_default());
        lines.add("size", self.bytes.map(|bytes| BinaryBytes(bytes).to_string()).unwrap_or_default());
        lines.add("chunks", summary.chunking());
        let unit = if summary.shards.is_some() { "shard" } else { "chunk" };
        let stored = self.stored.as_ref().map(|stored| stored.text(self.num_chunks, unit));
        lines.add("stored", stored.unwrap_or_default());
        let mut codecs = Vec::new();
        self.pipeline.iter().for_each(|codec| codec_lines(codec, 0, &mut codecs));
        lines.add("codecs", codecs.join("\n"));
    }
}

impl StoredChunks {
    fn text(&self, total: Option<u64>, unit: &str) -> String {
        let more = if self.complete { "" } else { "more than " };
        let total = total.map(|total| format!(" of {}", indicatif::HumanCount(total))).unwrap_or_default();
        format!("{more}{}{total}, {}", quantity(self.chunks, unit), BinaryBytes(self.bytes))
    }
}

impl GroupReport {
    fn add_lines(&self, lines: &mut Lines) {
        let others = match self.other_dialects {
            0 => String::new(),
            others => format!(", {} of other dialects", indicatif::HumanCount(others)),
        };
        lines.add("members", format!("{}, {}{others}", quantity(self.groups, "group"), quantity(self.arrays, "array")));
        let broken = self
            .broken
            .iter()
            .map(|broken| format!("{} {}: {}", broken.path, broken.problem.key, broken.problem.reason));
        lines.add("broken", broken.take(MAX_LISTED_BROKEN).collect::<Vec<_>>().join("\n"));
        if let Some(more) = self.broken.len().checked_sub(MAX_LISTED_BROKEN).filter(|more| *more > 0) {
            lines.add("", format!("and {} more", indicatif::HumanCount(more as u64)));
        }
        lines.add("consolidated", if self.consolidated { "yes" } else { "no" });
        if !self.only_consolidated.is_empty() {
            let more = if self.only_consolidated_truncated { ", and more" } else { "" };
            let only = self.only_consolidated.join(", ");
            lines.add("", format!("only in consolidated metadata: {only}{more}"));
        }
    }
}

/// The name and configuration of a codec or an extension.
fn named(named: &Value) -> String {
    let name = named.get("name").unwrap_or(named);
    let name = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
    match named.get("configuration").and_then(Value::as_object) {
        Some(configuration) if !configuration.is_empty() => format!("{name} {}", settings(configuration)),
        _ => name,
    }
}

/// A codec in a line, with the codecs of shards in the following lines.
fn codec_lines(codec: &Value, depth: usize, lines: &mut Vec<String>) {
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
    // The depth of the recursion is limited by that of the parsed document.
    inner.iter().for_each(|codec| codec_lines(codec, depth + 1, lines));
}

fn settings(configuration: &Map<String, Value>) -> String {
    let all: Vec<_> = configuration.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("({})", all.join(", "))
}

/// Attributes, one per line.
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
    fn codecs_of_shards_are_indented() {
        let mut lines = Vec::new();
        let sharding = json!({"name": "sharding_indexed", "configuration": {
            "chunk_shape": [2, 2], "index_codecs": ["bytes"],
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {}}],
        }});
        codec_lines(&sharding, 0, &mut lines);
        assert_eq!(lines, ["sharding_indexed (chunk_shape: [2,2])", "  bytes (endian: \"little\")", "  zstd"]);
    }

    #[test]
    fn stored_chunks_have_totals_and_units() {
        let stored = |chunks, complete| StoredChunks { chunks, bytes: 2048, complete };
        assert_eq!(stored(1, true).text(Some(4), "chunk"), "1 chunk of 4, 2.00 KiB");
        assert_eq!(stored(2000, false).text(None, "shard"), "more than 2,000 shards, 2.00 KiB");
    }

    #[test]
    fn attributes_are_one_per_line() {
        let attributes = json!({"a": 1, "unit": {"x": ["mV"]}});
        assert_eq!(pretty(&Json::compact(&attributes)), "a     1\nunit  {\"x\":[\"mV\"]}");
        let mut lines = Lines::default();
        lines.add("attributes", "a  1\nb  \u{1b}");
        lines.add("nothing", "");
        assert_eq!(lines.0, ["attributes    a  1", "              b  \\u{1b}"]);
    }
}

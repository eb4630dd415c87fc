//! The requests of a crowd, and the behavior of its clients.

use std::{fmt, str::FromStr};

use serde_json::json;

/// The requests of a crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// None: clients only connect.
    Silent,
    /// An incomplete request head.
    Heads,
    /// An incomplete request body.
    Uploads,
    /// The largest page of keys, as JSON.
    Keys,
    /// The largest page of children, as JSON.
    Children,
    /// All keys as lines.
    Lines,
    /// All children as HTML.
    Links,
    /// Declarations of a tree whose JSON consists of small values only.
    Documents,
    /// Declarations of a tree of many nodes, whose bodies arrive while another one is applied.
    Structures,
    /// Comparisons of a tree of deeply nested groups.
    Validations,
    /// Conversions of a tree to another path.
    Conversions,
    /// A complete tree of many arrays.
    Trees,
    /// The same tree in another model, with its source documents.
    Models,
    /// Many stacked rows of an array.
    Stacks,
    /// One element of each of many chunks.
    Points,
    /// One element of a chunk with transposed dimensions.
    Transposes,
    /// One element of a large chunk.
    Chunks,
    /// An array that is recompressed for the response.
    Codings,
    /// Writes of a scalar to all elements of a sharded array.
    Scalars,
    /// Reductions of a whole array, of which each client has its own.
    Reductions,
    /// Means of windows, whose results are larger than the array.
    Windows,
    /// Statistics of a whole array, which take several passes.
    Statistics,
    /// Labels of a large coordinate without order, which is sorted for each request.
    Labels,
    /// Pictures whose limits are percentiles.
    Pictures,
}

/// The behavior of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    /// Reads nothing.
    Holds,
    /// Reads a little now and then.
    Slow,
    /// Disconnects at once, repeatedly.
    Leaves,
    /// Reads the response and sends the request again.
    Repeats,
}

/// A crowd: its requests and its behavior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// The requests.
    pub kind: Kind,
    /// The behavior.
    pub behavior: Behavior,
}

/// Error of parsing a [`Crowd`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no kind of crowd, as in Keys or Keys/Slow")]
pub struct CrowdError(String);

const BEHAVIORS: [Behavior; 4] = [Behavior::Holds, Behavior::Slow, Behavior::Leaves, Behavior::Repeats];

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 24] = [
        Self::Silent,
        Self::Heads,
        Self::Uploads,
        Self::Keys,
        Self::Children,
        Self::Lines,
        Self::Links,
        Self::Documents,
        Self::Structures,
        Self::Validations,
        Self::Conversions,
        Self::Trees,
        Self::Models,
        Self::Stacks,
        Self::Points,
        Self::Transposes,
        Self::Chunks,
        Self::Codings,
        Self::Scalars,
        Self::Reductions,
        Self::Windows,
        Self::Statistics,
        Self::Labels,
        Self::Pictures,
    ];

    /// True if it needs arrays or trees in addition to keys.
    pub fn needs_nodes(self) -> bool {
        !matches!(
            self,
            Self::Silent
                | Self::Heads
                | Self::Uploads
                | Self::Keys
                | Self::Children
                | Self::Lines
                | Self::Links
                | Self::Documents
        )
    }

    /// True if it computes with elements or labels.
    pub fn computes(self) -> bool {
        matches!(self, Self::Reductions | Self::Windows | Self::Statistics | Self::Labels | Self::Pictures)
    }

    /// The bytes that client `number` sends.
    pub fn request(self, number: usize) -> Vec<u8> {
        let get = |target: &str| with_body("GET", target, "*/*", "");
        match self {
            Self::Silent => Vec::new(),
            Self::Heads => b"GET /store/small HTTP/1.1\r\nHost: localhost\r\nX: ".to_vec(),
            Self::Uploads => {
                let head = "PUT /store/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n";
                [head.as_bytes(), &[7; 512 << 10]].concat()
            }
            Self::Keys => with_body("GET", "/store/long/?list=keys&limit=10000", "application/json", ""),
            Self::Children => with_body("GET", "/store/long/?limit=10000", "application/json", ""),
            Self::Lines => with_body("GET", "/store/long/?list=keys", "application/x-ndjson", ""),
            Self::Links => with_body("GET", "/store/long/", "text/html", ""),
            Self::Documents => {
                with_body("PUT", "/node/tree", "*/*", &["[", &"{\"\":0},".repeat(60_000), "0]"].concat())
            }
            Self::Structures => {
                with_body("PUT", &format!("/node/structures/{}?overwrite", number % 8), "*/*", &groups(2000))
            }
            Self::Validations => with_body("POST", "/node/crowd/trees?validate", "*/*", &chains()),
            Self::Conversions => {
                with_body("POST", &format!("/node/crowd/trees?convert=v2&target=/converted/{number}"), "*/*", "")
            }
            Self::Trees => get("/node/crowd/trees?depth=all"),
            Self::Models => get("/node/crowd/trees?depth=all&as=v2&flat&include=source"),
            Self::Stacks => {
                let row = |row: u64| json!([row * 4099 % (64 << 10), {"start": 0, "stop": 1024}]);
                let body = json!({"stack": (0..8192).map(row).collect::<Vec<_>>()}).to_string();
                with_body("POST", "/array/crowd/rows?read&format=csv", "*/*", &body)
            }
            Self::Points => {
                let points: Vec<[u64; 2]> = (0..64).map(|chunk| [chunk * 1024, 5]).collect();
                with_body("POST", "/array/crowd/rows?read", "*/*", &json!({"points": points}).to_string())
            }
            Self::Transposes => get(&format!("/array/crowd/turned?select={}", ["1"; 25].join(","))),
            Self::Chunks => get("/array/crowd/chunk?select=5"),
            Self::Codings => {
                b"GET /array/crowd/rows?format=raw HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"
                    .to_vec()
            }
            // Results are remembered, so each client asks for others.
            Self::Reductions => get(&format!("/array/crowd/rows?reduce=mean,std,argmax&select={number}:")),
            Self::Windows => get(&format!("/array/crowd/rows?reduce=mean&coarsen.0=2&select={number}:&format=raw")),
            Self::Statistics => get(&format!("/array/crowd/rows?stats&select={number}:")),
            Self::Labels => {
                let shown = format!("isel.x={number}:{}&format=xarray", number + 1000);
                get(&format!("/array/crowd/labelled/{}/data?{shown}", number % 2))
            }
            Self::Pictures => {
                let shown = format!("select={number}:{}&limits=robust&cmap=viridis", number + 4096);
                get(&format!("/array/crowd/rows?format=png&{shown}"))
            }
            Self::Scalars => with_body("PUT", &format!("/array/crowd/shards?select={}", number % 8), "*/*", "3"),
        }
    }
}

impl Crowd {
    /// The crowds that need only keys.
    pub fn of_keys() -> Vec<Self> {
        let kinds = Kind::ALL.into_iter().filter(|kind| !kind.needs_nodes());
        let more = [Behavior::Slow, Behavior::Leaves].map(|behavior| Self { kind: Kind::Keys, behavior });
        kinds.map(Self::from).chain(more).collect()
    }

    /// A crowd of each kind that computes, whose clients leave: the shortest set that runs every computation.
    pub fn of_abandoned_computations() -> Vec<Self> {
        let kinds = Kind::ALL.into_iter().filter(|kind| kind.computes());
        kinds.map(|kind| Self { kind, behavior: Behavior::Leaves }).collect()
    }

    /// The default crowds.
    pub fn all() -> Vec<Self> {
        let of = |kind, behavior| Self { kind, behavior };
        let mut all = Self::of_keys();
        all.extend(Kind::ALL.into_iter().filter(|kind| kind.needs_nodes()).map(Self::from));
        for behavior in [Behavior::Holds, Behavior::Slow, Behavior::Leaves] {
            all.extend([Kind::Trees, Kind::Stacks, Kind::Codings].map(|kind| of(kind, behavior)));
            all.extend(Kind::ALL.into_iter().filter(|kind| kind.computes()).map(|kind| of(kind, behavior)));
        }
        all
    }
}

impl From<Kind> for Crowd {
    /// Clients that read nothing if the response is long and cheap, otherwise clients that repeat the request.
    fn from(kind: Kind) -> Self {
        Self { kind, behavior: if kind.needs_nodes() { Behavior::Repeats } else { Behavior::Holds } }
    }
}

impl FromStr for Crowd {
    type Err = CrowdError;

    fn from_str(text: &str) -> Result<Self, CrowdError> {
        let (kind, behavior) = text.split_once('/').map_or((text, None), |(kind, behavior)| (kind, Some(behavior)));
        let same = |name: String, text: &str| name.eq_ignore_ascii_case(text);
        let error = || CrowdError(text.to_owned());
        let kind = Kind::ALL.into_iter().find(|known| same(format!("{known:?}"), kind)).ok_or_else(error)?;
        let Some(behavior) = behavior else { return Ok(kind.into()) };
        let behavior = BEHAVIORS.into_iter().find(|known| same(format!("{known:?}"), behavior)).ok_or_else(error)?;
        Ok(Self { kind, behavior })
    }
}

impl fmt::Display for Crowd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:?}/{:?}", self.kind, self.behavior))
    }
}

fn with_body(method: &str, target: &str, accept: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nContent-Type: application/json\r\n"
    );
    format!("{head}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// A group with `count` groups as members.
pub(super) fn groups(count: usize) -> String {
    let members: Vec<String> =
        (0..count).map(|name| format!(r#""{name}":{{"zarr_format":3,"node_type":"group"}}"#)).collect();
    format!(r#"{{"zarr_format":3,"node_type":"group","members":{{{}}}}}"#, members.join(","))
}

/// 256 KiB of nested groups.
fn chains() -> String {
    let open = r#"{"zarr_format":3,"node_type":"group","members":{"a":"#.repeat(20);
    let chain = format!(r#"{open}{{"zarr_format":3,"node_type":"group"}}{}"#, "}}".repeat(20));
    let members: Vec<String> = (0..(256 << 10) / chain.len()).map(|name| format!(r#""{name}":{chain}"#)).collect();
    format!(r#"{{"zarr_format":3,"node_type":"group","members":{{{}}}}}"#, members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crowd_kind_round_trips_through_its_text() {
        for crowd in Crowd::all() {
            assert_eq!(crowd.to_string().parse(), Ok(crowd));
        }
        assert_eq!("keys".parse(), Ok(Crowd { kind: Kind::Keys, behavior: Behavior::Holds }));
        assert_eq!("trees".parse(), Ok(Crowd { kind: Kind::Trees, behavior: Behavior::Repeats }));
        assert!("".parse::<Crowd>().is_err() && "keys/".parse::<Crowd>().is_err());
    }

    #[test]
    fn content_length_matches_the_body() {
        for kind in Kind::ALL {
            let request = kind.request(3);
            let text = String::from_utf8_lossy(&request);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let whole = length.is_none_or(|length| length == body.len().to_string());
            assert!(whole || kind == Kind::Uploads, "{kind:?}");
        }
    }
}

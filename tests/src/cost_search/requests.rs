//! Requests selected by genes, and their prerequisites.

use std::fmt;

use bytes::Bytes;
use http::Method;

use super::{
    arrays::Array,
    computing, documents, fixtures,
    genome::{Gene, Genome, Operation},
    labelled, selections,
};

pub(super) const JSON: &str = "application/json";
const RAW: &str = "application/octet-stream";

/// A request with a complete body.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path and query.
    pub target: String,
    /// The headers except `Host` and `Content-Length`.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
}

/// A request with its prerequisites.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The array that it concerns.
    pub array: Option<Array>,
    /// The coordinate of the array's first dimension.
    pub coordinate: Option<Array>,
    /// The requests that create its prerequisites.
    pub before: Vec<Request>,
    /// The measured request.
    pub request: Request,
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: Method, target: impl Into<String>) -> Self {
        Self { method, target: target.into(), headers: Vec::new(), body: Bytes::new() }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Sets a body with a media type.
    #[must_use]
    pub fn body(self, media_type: &str, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }.header("content-type", media_type)
    }

    /// The number of bytes sent.
    pub fn len(&self) -> u64 {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        (self.target.len() + headers + self.body.len()) as u64
    }

    /// Always false; provided for symmetry with `len`.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes sent over a keep-alive connection.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: localhost\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", self.body.len()));
        [head.as_bytes(), &self.body].concat()
    }
}

impl Trial {
    /// The request that a genome selects. `number` is unique, for operations that succeed only once.
    pub fn of(genome: &Genome, number: u64) -> Self {
        match genome.operation {
            Operation::StoreGet | Operation::StoreHead => get_key(genome).into(),
            Operation::StorePut => put_key(genome).into(),
            Operation::StoreDelete => Request::new(Method::DELETE, key(genome)).into(),
            Operation::StoreList => list(genome).into(),
            Operation::StoreErase => erase(genome, number),
            Operation::ArrayGet | Operation::ArrayHead | Operation::ArrayRead => read(genome),
            Operation::ArrayPut | Operation::ArrayAppend => write(genome),
            Operation::NodeGet | Operation::NodeHead => node_get(genome).into(),
            Operation::NodePut => node_put(genome, number),
            Operation::NodePatch => node_patch(genome, number),
            Operation::NodeDelete => node_delete(genome, number),
            Operation::NodeValidate => node_validate(genome, number),
            Operation::NodeConvert => node_convert(genome, number),
            Operation::Schema => {
                let target = genome.pick(Gene::Kind, &["/schema/zom/v3", "/schema/zom/v2", "/schema/zom/draft"]);
                Request::new(Method::GET, target).into()
            }
            Operation::ArrayReduce => computing::reduce(genome),
            Operation::ArrayStats => computing::stats(genome),
            Operation::ArrayPicture => computing::picture(genome),
            Operation::ArrayChunks => computing::chunks(genome),
            Operation::ArrayLabels => labelled::labels(genome),
            Operation::Service => {
                let target = genome.pick(Gene::Kind, &["/metrics", "/openapi.yaml", "/readyz", "/healthz"]);
                Request::new(
                    genome.pick(Gene::Format, &[Method::GET.as_str(), "HEAD", "OPTIONS"]).parse().unwrap(),
                    target,
                )
                .into()
            }
        }
    }

    /// The memory that it takes in addition by a known rule: that of the encoder of a chunk that it writes, or of the
    /// labels of a coordinate.
    pub fn extra_memory(&self) -> u64 {
        let writes = self.request.target.contains("append") || self.request.method == Method::PUT;
        let encoder = self.array.as_ref().filter(|_| writes).map_or(0, Array::encoder_bytes);
        encoder.max(self.coordinate.as_ref().map_or(0, Array::label_bytes))
    }

    /// The size of the chunk that it decodes or encodes.
    pub fn chunk(&self) -> u64 {
        self.array.iter().chain(&self.coordinate).map(Array::chunk_bytes).max().unwrap_or(0)
    }

    /// A request for an array, which is still to be set.
    pub(super) fn of_array(array: Array) -> Self {
        Self { array: Some(array), ..Request::new(Method::GET, "").into() }
    }
}

impl From<Request> for Trial {
    fn from(request: Request) -> Self {
        Self { array: None, coordinate: None, before: Vec::new(), request }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, shortened(&self.target))?;
        self.headers.iter().try_for_each(|(name, value)| write!(f, " -H '{name}: {}'", shortened(value)))?;
        match std::str::from_utf8(&self.body) {
            Ok("") => Ok(()),
            Ok(text) => write!(f, " --data '{}'", shortened(text)),
            Err(_) => write!(f, " --data-binary ({} bytes)", self.body.len()),
        }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(160).and_then(|(end, _)| text.split_at_checked(end)) {
        Some((begin, _)) => format!("{begin}…({} bytes)", text.len()),
        None => text.to_owned(),
    }
}

fn key(genome: &Genome) -> String {
    let name = match genome.pick(Gene::Name, &[0, 1, 2]) {
        0 => "small".to_owned(),
        1 => "k".repeat(1000),
        _ => format!("{}a", "a/".repeat(500)),
    };
    format!("/store/values/{name}")
}

fn get_key(genome: &Genome) -> Request {
    let method = if genome.operation == Operation::StoreHead { Method::HEAD } else { Method::GET };
    let target = match genome.pick(Gene::Kind, &[0, 1, 2, 3]) {
        0 => key(genome),
        1 => "/store/values/large".to_owned(),
        2 => format!("/store/{}", "%61".repeat(1000)),
        _ => "/store/long".to_owned(),
    };
    let tags = || vec![r#""00000000000000ab0000000000000001""#; genome.pick(Gene::Count, &[1, 1000])].join(", ");
    let request = Request::new(method, target);
    let request = match genome.pick(Gene::Stride, &[0, 1, 2, 3]) {
        0 => request,
        1 => request.header("range", "bytes=-1"),
        2 => request.header("range", "bytes=1048576-1048577"),
        _ => request.header("range", format!("bytes=0-1{}", ",0-1".repeat(5000))),
    };
    match genome.pick(Gene::Conditions, &[0, 1, 2]) {
        0 => request,
        1 => request.header("if-none-match", tags()),
        _ => request.header("if-match", tags()),
    }
}

fn put_key(genome: &Genome) -> Request {
    let size = genome.pick(Gene::Size, &[0, 1, 4096, 4097, 1 << 20, 8 << 20]);
    let request = Request::new(Method::PUT, key(genome)).body(RAW, vec![7; size]);
    if genome.has(Gene::Conditions, 0) { request.header("if-none-match", "*") } else { request }
}

fn list(genome: &Genome) -> Request {
    let prefix = genome.pick(Gene::Kind, &["", "long/", "prefixes/", "trees/", "values/", "none/", "erased/"]);
    let list = genome.pick(Gene::Select, &["dir", "keys"]);
    let limit = genome.pick(Gene::Count, &["", "&limit=10000", "&limit=1"]);
    let accept = genome.pick(Gene::Format, &[JSON, "text/html", "application/x-ndjson"]);
    let method = if genome.has(Gene::Flags, 7) { Method::HEAD } else { Method::GET };
    Request::new(method, format!("/store/{prefix}?list={list}{limit}")).header("accept", accept)
}

fn erase(genome: &Genome, number: u64) -> Trial {
    let count = genome.pick(Gene::Count, &[0, 10, 100]);
    let put = |key| Request::new(Method::PUT, format!("/store/erased/{number}/{key}")).body(RAW, vec![7; 100]);
    let before = (0..count).map(put).collect();
    Trial {
        array: None,
        coordinate: None,
        before,
        request: Request::new(Method::DELETE, format!("/store/erased/{number}/")),
    }
}

pub(super) fn array_get(genome: &Genome, request: Request) -> Request {
    match genome.pick(Gene::Coding, &["", "gzip", "zstd"]) {
        "" => request,
        coding => request.header("accept-encoding", coding),
    }
}

fn read(genome: &Genome) -> Trial {
    let array = Array::of(genome);
    let format = genome.pick(Gene::Format, &["raw", "npy", "json", "csv", "png"]);
    let request = match genome.operation {
        Operation::ArrayRead => {
            let body = selections::body(genome, &array).to_string();
            Request::new(Method::POST, format!("/array/{}?read&format={format}", array.name)).body(JSON, body)
        }
        operation => {
            let method = if operation == Operation::ArrayHead { Method::HEAD } else { Method::GET };
            let select = selections::text(genome, &array).0;
            Request::new(method, format!("/array/{}?select={select}&format={format}", array.name))
        }
    };
    Trial { request: array_get(genome, request), ..Trial::of_array(array) }
}

fn write(genome: &Genome) -> Trial {
    let array = Array::of(genome);
    let (select, count) = selections::text(genome, &array);
    let (method, target, count) = match genome.operation {
        Operation::ArrayAppend => {
            let axis = genome.pick(Gene::Stride, &["0", "-1"]);
            let step = array.shape.iter().skip(1).fold(1, |steps: u64, extent| steps.saturating_mul(*extent));
            (Method::POST, format!("/array/{}?append={axis}", array.name), step)
        }
        _ => (Method::PUT, format!("/array/{}?select={select}", array.name), count),
    };
    let len = count.saturating_mul(array.size).min(8 << 20);
    let request = Request::new(method, target);
    let request = match genome.pick(Gene::Coding, &[0, 0, 1, 2, 3]) {
        0 => request.body(JSON, if array.document["data_type"] == "string" { r#""xyz""# } else { "3" }),
        1 => request.body(RAW, vec![3; len as usize]),
        2 => request.body(JSON, "[]"),
        _ => request.body(JSON, documents::elements(genome)),
    };
    Trial { request, ..Trial::of_array(array) }
}

fn node_get(genome: &Genome) -> Request {
    let method = if genome.operation == Operation::NodeHead { Method::HEAD } else { Method::GET };
    let tree = genome.pick(Gene::Kind, fixtures::TREES);
    let depth = genome.pick(Gene::Depth, &["depth=all", "depth=0", "depth=1", "depth=2"]);
    let model = genome.pick(Gene::Dialect, &["", "&as=v2", "&as=v3"]);
    let flat = if genome.has(Gene::Flags, 0) { "&flat" } else { "" };
    let origin = if genome.has(Gene::Flags, 1) { "&include=source" } else { "" };
    array_get(genome, Request::new(method, format!("/node/{tree}?{depth}{model}{flat}{origin}")))
}

fn put_node(target: impl Into<String>, document: String) -> Request {
    Request::new(Method::PUT, target).body(JSON, document)
}

fn scratch(number: u64) -> String {
    format!("/node/scratch/{number}")
}

fn node_put(genome: &Genome, number: u64) -> Trial {
    let document = documents::tree(genome);
    let replace = if genome.has(Gene::Flags, 0) { "&overwrite" } else { "" };
    let lossy = if genome.has(Gene::Flags, 1) { "&allow_lossy" } else { "" };
    let dialect = genome.pick(Gene::Dialect, &["", "dialect=v3", "dialect=v2", "dialect=draft"]);
    let before = match genome.pick(Gene::Conditions, &[0, 0, 1, 2]) {
        0 => Vec::new(),
        1 => vec![put_node(scratch(number), document.clone())],
        _ => vec![put_node(scratch(number), fixtures::groups(1000, 3))],
    };
    let target = format!("{}?{dialect}{replace}{lossy}", scratch(number)).replace("?&", "?");
    let request = array_get(genome, put_node(target, document));
    Trial { array: None, coordinate: None, before, request }
}

fn node_patch(genome: &Genome, number: u64) -> Trial {
    let patch = documents::patch(genome);
    let (before, target) = match genome.pick(Gene::Dialect, &[0, 1, 2, 3]) {
        0 => (vec![put_node(scratch(number), fixtures::group_with_attributes(1 << 20))], scratch(number)),
        1 => (Vec::new(), "/node/trees/arrays/5".to_owned()),
        2 => (Vec::new(), "/node/trees/consolidated/5".to_owned()),
        _ => {
            let target = scratch(number);
            (vec![put_node(target.clone(), fixtures::array(&[1 << 20], &[1]).to_string())], target)
        }
    };
    Trial { array: None, coordinate: None, before, request: Request::new(Method::PATCH, target).body(JSON, patch) }
}

fn node_delete(genome: &Genome, number: u64) -> Trial {
    let before = vec![put_node(scratch(number), documents::tree(genome))];
    Trial { array: None, coordinate: None, before, request: Request::new(Method::DELETE, scratch(number)) }
}

fn node_validate(genome: &Genome, number: u64) -> Trial {
    let document = documents::tree(genome);
    let (before, target) = match genome.pick(Gene::Conditions, &[0, 1, 2]) {
        0 => (Vec::new(), format!("/node/{}", genome.pick(Gene::Dialect, fixtures::TREES))),
        1 => (vec![put_node(scratch(number), document.clone())], scratch(number)),
        _ => (Vec::new(), "/node/trees/wide".to_owned()),
    };
    Trial {
        array: None,
        coordinate: None,
        before,
        request: Request::new(Method::POST, format!("{target}?validate")).body(JSON, document),
    }
}

fn node_convert(genome: &Genome, number: u64) -> Trial {
    let dialect = genome.pick(Gene::Dialect, &["v2", "v3", "draft"]);
    let to = |path: &str| format!("/node/{path}?convert={dialect}&target=/converted/{number}");
    if genome.has(Gene::Conditions, 0) {
        let before = vec![put_node(scratch(number), documents::tree(genome))];
        let target = to(scratch(number).trim_start_matches("/node/"));
        return Trial { array: None, coordinate: None, before, request: Request::new(Method::POST, target) };
    }
    if genome.has(Gene::Conditions, 1) {
        let array = Array::of(genome);
        let target = to(&array.name);
        return Trial { request: Request::new(Method::POST, target), ..Trial::of_array(array) };
    }
    Request::new(Method::POST, to(genome.pick(Gene::Kind, fixtures::TREES))).into()
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn every_genome_yields_a_request_of_its_operation() {
        let mut random = StdRng::seed_from_u64(5);
        for operation in Operation::ALL {
            for number in 0..20 {
                let genome = Genome::random(operation, &mut random).with(Gene::Size, 0).with(Gene::Chunk, 4);
                let trial = Trial::of(&genome, number);
                let request = &trial.request;
                assert!(request.target.starts_with('/') && request.target.is_ascii(), "{request}");
                assert!(request.len() >= (request.target.len() + request.body.len()) as u64);
                let part = operation.name().split('-').next().unwrap();
                let service = ["/metrics", "/openapi.yaml", "/readyz", "/healthz"].contains(&request.target.as_str());
                assert!(request.target.starts_with(&format!("/{part}")) || service, "{operation}: {request}");
                assert!(request.target.parse::<http::Uri>().is_ok(), "{request}");
            }
        }
    }

    #[test]
    fn request_len_matches_its_serialized_bytes() {
        let request = Request::new(Method::PUT, "/store/a").body("text/plain", "abc");
        assert_eq!(
            request.to_bytes(),
            b"PUT /store/a HTTP/1.1\r\nHost: localhost\r\ncontent-type: text/plain\r\nContent-Length: 3\r\n\r\nabc"
        );
        assert_eq!(request.to_string(), "PUT /store/a -H 'content-type: text/plain' --data 'abc'");
        let long = Request::new(Method::PUT, "/store/a").body("text/plain", "é".repeat(500));
        assert!(long.to_string().contains("…(1000 bytes)"));
    }
}

//! Checks of every response that a test receives through [`TestServer`](super::TestServer) or
//! [`RunningServer`](super::RunningServer) against `openapi.yaml`.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, LazyLock, Mutex},
};

use http::{HeaderMap, Method, StatusCode, Uri};
use jsonschema::Validator;
use serde_json::{Map, Value};

/// The contract, parsed once.
pub static CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi.yaml");
    Contract::parse(&std::fs::read_to_string(path).unwrap())
});

/// Responses that any request may get, according to the document's description, by their names in
/// `components/responses`.
const TO_ANY_REQUEST: [(u16, &str); 5] =
    [(400, "BadRequest"), (401, "Unauthorized"), (403, "Forbidden"), (501, "TransferCodedBody"), (503, "Busy")];

/// Headers that every response may have in addition to its own.
const OF_EVERY_ANSWER: [&str; 11] = [
    "access-control-allow-origin",
    "access-control-expose-headers",
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "date",
    "referrer-policy",
    "transfer-encoding",
    "x-content-type-options",
    "x-request-id",
];

/// Headers that every response must have.
const REQUIRED: [&str; 3] = ["access-control-allow-origin", "x-content-type-options", "x-request-id"];

const PROBLEM: &str = "application/problem+json";

/// An OpenAPI document and the validators of its schemas.
pub struct Contract {
    document: Value,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// The base path of servers in tests that have one.
pub const BASE_PATH: &str = "/lab/zarr";

/// The method and path of a request, without the query.
#[derive(Clone, Debug)]
pub struct RequestInfo {
    method: Method,
    path: String,
}

impl RequestInfo {
    pub fn new(method: &Method, uri: &Uri) -> Self {
        // The base path of the tests, and a share link, precede the usual path.
        let path = uri.path().strip_prefix(BASE_PATH).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let path = path.map_or(uri.path(), |rest| if rest.is_empty() { "/" } else { rest });
        let shared = path.strip_prefix("/s/").map(|rest| rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"));
        Self { method: method.clone(), path: shared.unwrap_or(path).to_owned() }
    }

    /// Parses the text of a request; `None` if it is not HTTP.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split("\r\n").next()?.split(' ');
        let (method, uri, version) = (parts.next()?, parts.next()?, parts.next()?);
        let (method, uri) = (method.parse().ok()?, uri.parse().ok()?);
        version.starts_with("HTTP/1.").then(|| Self::new(&method, &uri))
    }

    /// The path template, by the rules in the document's description.
    fn template(&self) -> String {
        let is_prefix = |rest: &str| rest.ends_with('/') || rest.to_ascii_lowercase().ends_with("%2f");
        let below =
            |parent: &str| self.path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        match self.path.strip_prefix("/store/") {
            Some(_) if self.method == Method::PUT => "/store/{key}".to_owned(),
            Some("") => "/store/".to_owned(),
            Some(rest) if is_prefix(rest) => "/store/{prefix}/".to_owned(),
            Some(_) => "/store/{key}".to_owned(),
            None if below("/array") => "/array/{path}".to_owned(),
            None if below("/browse") => "/browse/{path}".to_owned(),
            None if self.path.strip_prefix("/assets/").is_some_and(|rest| !rest.is_empty() && !rest.contains('/')) => {
                "/assets/{file}".to_owned()
            }
            None if below("/node") => "/node/{path}".to_owned(),
            None if ["/schema/zom/v2", "/schema/zom/v3"].contains(&self.path.as_str()) => {
                "/schema/zom/{version}".to_owned()
            }
            None if below("/token") && self.path.len() > "/token".len() => "/token/{id}".to_owned(),
            None if below("/snapshot") && self.path.len() > "/snapshot".len() => "/snapshot/{id}".to_owned(),
            None if below("/share") && self.path.len() > "/share".len() => "/share/{id}".to_owned(),
            None => self.path.clone(),
        }
    }
}

impl Contract {
    pub fn parse(text: &str) -> Self {
        Self { document: serde_saphyr::from_str(text).unwrap(), validators: Mutex::default() }
    }

    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The operations of a path with their methods, those that OpenAPI does not know included.
    pub fn operations<'d>(&'d self, item: &'d Value) -> Vec<(&'d str, &'d Value)> {
        let known = item.as_object().unwrap().iter().filter(|(_, operation)| operation.get("operationId").is_some());
        let others = item.get("x-additionalOperations").and_then(Value::as_object).into_iter().flatten();
        let others = others.map(|(method, operation)| {
            let reference = operation["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
            (method.as_str(), self.document.pointer(reference).unwrap())
        });
        known.map(|(method, operation)| (method.as_str(), operation)).chain(others).collect()
    }

    /// Checks the status and headers of a response, and its body if given.
    ///
    /// # Panics
    ///
    /// If the document does not describe this response to the request.
    #[track_caller]
    pub fn check(&self, asked: &RequestInfo, status: StatusCode, headers: &HeaderMap, body: Option<&[u8]>) {
        if let Err(reason) = self.try_check(asked, status, headers, body) {
            let shown = body.map(|body| String::from_utf8_lossy(&body[..body.len().min(1000)]).into_owned());
            panic!("openapi.yaml: {} {} {status}: {reason}\n{headers:?}\n{shown:?}", asked.method, asked.path);
        }
    }

    /// Like [`check`](Self::check), but returns the first difference.
    pub fn try_check(
        &self,
        asked: &RequestInfo,
        status: StatusCode,
        headers: &HeaderMap,
        body: Option<&[u8]>,
    ) -> Result<(), String> {
        let responses = self.responses(asked, status);
        let Some(response) = responses.first() else { return Err("the status is not documented".to_owned()) };
        self.check_headers(response, headers)?;
        let media = media_type(headers);
        if asked.method == Method::HEAD {
            return body.is_none_or(<[u8]>::is_empty).then_some(()).ok_or_else(|| "HEAD has a body".to_owned());
        }
        let contents: Vec<_> = responses.iter().map(|response| pointer(response, &["content"])).collect();
        let documented = contents.iter().any(|content| self.at(content).and_then(Value::as_object).is_some());
        if !documented {
            let empty = body.is_none_or(<[u8]>::is_empty) && media.is_empty();
            return empty.then_some(()).ok_or_else(|| "a body is not documented".to_owned());
        }
        let media_pointers = contents.iter().map(|content| pointer(content, &[&media]));
        let known: Vec<_> = media_pointers.filter(|pointer| self.at(pointer).is_some()).collect();
        let Some(first) = known.first() else { return Err(format!("the media type {media:?} is not documented")) };
        match body {
            Some(body) if !headers.contains_key("content-encoding") => self.check_body(&media, first, &known, body),
            _ => Ok(()),
        }
    }

    /// The responses documented for this request and status, those of the operation first.
    fn responses(&self, asked: &RequestInfo, status: StatusCode) -> Vec<String> {
        let template = asked.template();
        let item = pointer("", &["paths", &template]);
        let shared = |name: &str| pointer("", &["components", "responses", name]);
        let mut found = Vec::new();
        if self.at(&item).is_none() {
            found.extend((status == StatusCode::NOT_FOUND).then(|| shared("NotFound")));
        } else if asked.method == Method::OPTIONS {
            found.extend((status == StatusCode::NO_CONTENT).then(|| shared("Options")));
        } else {
            let operation = match self.at(&pointer(&item, &["x-additionalOperations", asked.method.as_str()])) {
                Some(_) => self.resolved(pointer(&item, &["x-additionalOperations", asked.method.as_str()])),
                None => pointer(&item, &[&asked.method.as_str().to_ascii_lowercase()]),
            };
            match self.at(&operation) {
                Some(_) => found.push(self.resolved(pointer(&operation, &["responses", status.as_str()]))),
                None if status == StatusCode::METHOD_NOT_ALLOWED => found.push(shared("MethodNotAllowed")),
                None => {}
            }
        }
        let to_any = TO_ANY_REQUEST.iter().filter(|(code, _)| status == *code);
        found.extend(to_any.map(|(_, name)| shared(name)));
        found.retain(|pointer| self.at(pointer).is_some());
        found
    }

    fn check_headers(&self, response: &str, headers: &HeaderMap) -> Result<(), String> {
        if let Some(missing) = REQUIRED.iter().find(|name| !headers.contains_key(**name)) {
            return Err(format!("{missing} is missing"));
        }
        let documented = pointer(response, &["headers"]);
        let none = Map::new();
        let documented_headers = self.at(&documented).and_then(Value::as_object).unwrap_or(&none);
        for name in documented_headers.keys() {
            let header = self.resolved(pointer(&documented, &[name]));
            let required = self.at(&header).is_some_and(|header| header["required"] == true);
            match headers.get(name) {
                Some(value) => self.check_header(name, &header, value.to_str().map_err(|error| error.to_string())?)?,
                None if required => return Err(format!("the required header {name} is missing")),
                None => {}
            }
        }
        let known: BTreeSet<_> = documented_headers.keys().map(|name| name.to_ascii_lowercase()).collect();
        let unknown = headers.keys().map(http::HeaderName::as_str);
        let mut unknown = unknown.filter(|name| !OF_EVERY_ANSWER.contains(name) && !known.contains(*name));
        unknown.next().map_or(Ok(()), |name| Err(format!("the header {name} is not documented")))
    }

    fn check_header(&self, name: &str, header: &str, text: &str) -> Result<(), String> {
        let schema = pointer(header, &["schema"]);
        let kind = self.at(&schema).map_or(&Value::Null, |schema| &schema["type"]);
        let value = match kind.as_str() {
            Some("integer" | "number" | "boolean") => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
            _ => Value::from(text),
        };
        self.validate(&schema, &value).map_err(|error| format!("the header {name}: {text}: {error}"))
    }

    fn check_body(&self, media: &str, first: &str, known: &[String], body: &[u8]) -> Result<(), String> {
        let schema = pointer(first, &["schema"]);
        match media {
            PROBLEM => self.check_problem(&schema, known, body),
            "application/x-ndjson" => {
                let lines = pointer("", &["components", "schemas", "KeyLine"]);
                let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
                text.lines().try_for_each(|line| self.validate_text(&lines, line.as_bytes()))
            }
            _ if media.ends_with("json") => self.validate_text(&schema, body),
            _ => Ok(()),
        }
    }

    /// Checks a problem document against its schema, and its type against the documented examples.
    fn check_problem(&self, schema: &str, known: &[String], body: &[u8]) -> Result<(), String> {
        self.validate_text(schema, body)?;
        let problem: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let slug = problem["type"].as_str().and_then(|kind| kind.rsplit('/').next()).unwrap_or_default();
        let has = |media: &String| self.at(&pointer(media, &["examples", slug])).is_some();
        known.iter().any(has).then_some(()).ok_or_else(|| format!("the problem type {slug} is not documented"))
    }

    fn validate_text(&self, schema: &str, text: &[u8]) -> Result<(), String> {
        if self.at(schema).is_none() {
            return Ok(());
        }
        match serde_json::from_slice(text) {
            Ok(value) => self.validate(schema, &value),
            // Attributes may contain the bare words that Python writes; see `getNode`.
            Err(_)
                if [b"NaN".as_slice(), b"Infinity"]
                    .iter()
                    .any(|word| text.windows(word.len()).any(|found| found == *word)) =>
            {
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn validate(&self, schema: &str, value: &Value) -> Result<(), String> {
        let validator = self.validator(schema);
        validator.validate(value).map_err(|error| format!("{}: {error}", error.instance_path()))
    }

    fn validator(&self, schema: &str) -> Arc<Validator> {
        let mut validators = self.validators.lock().unwrap();
        let make = || {
            let mut root = self.document.clone();
            root["$ref"] = format!("#{}", schema.replace('{', "%7B").replace('}', "%7D")).into();
            Arc::new(jsonschema::options().should_validate_formats(true).build(&root).unwrap())
        };
        validators.entry(schema.to_owned()).or_insert_with(make).clone()
    }

    /// Resolves a reference at this pointer; returns the pointer itself if there is none.
    fn resolved(&self, place: String) -> String {
        let reference = self.at(&place).and_then(|value| value["$ref"].as_str());
        reference.and_then(|reference| reference.strip_prefix('#')).map_or(place.clone(), str::to_owned)
    }

    fn at(&self, pointer: &str) -> Option<&Value> {
        self.document.pointer(pointer)
    }
}

/// Appends segments to a JSON pointer.
fn pointer(base: &str, segments: &[&str]) -> String {
    segments.iter().fold(base.to_owned(), |base, segment| base + "/" + &segment.replace('~', "~0").replace('/', "~1"))
}

/// The media type of a response without parameters.
fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

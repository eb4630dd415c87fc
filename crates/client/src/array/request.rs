//! Requests for elements.

use bytes::Bytes;
use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{CONTENT_TYPE, IF_NONE_MATCH},
};
use serde::de::DeserializeOwned;
use zarrd_meta::{Dialect, NodePath, selection::ReadRequest};
use zarrd_store::Version;
use zarrd_wire::{array::Format, etag, headers, query::ElementsQuery, routes};

use super::{ArrayError, Description, problem, stream::ElementsResponse};
use crate::{deadline::Deadline, error::RequestError, response::Response, retry::FailedAttempt, transport::Transport};

/// Maximum length of a query in a URL, in bytes. It is well below the limits of zarrd and of common proxies.
const MAX_QUERY_BYTES: usize = 4096;

/// The largest JSON document, in bytes: the chunks on a page with the longest keys, or all bins.
const MAX_JSON_BYTES: usize = 64 << 20;

/// A request for elements, which can be sent any number of times.
pub(super) struct ElementsRequest {
    path: NodePath,
    target: String,
    /// The selection as JSON, if it is not in the target.
    body: Option<Bytes>,
}

impl ElementsRequest {
    /// Puts a short selection into the URL, so that caches can use it, and any other one into a body.
    pub(super) fn new(path: &NodePath, request: &ReadRequest, dialect: Option<Dialect>) -> Self {
        let query = ElementsQuery { format: Some(Format::Raw), dialect, ..ElementsQuery::default() };
        let (url_path, path) = (routes::array_path(path), path.clone());
        if let Some(query) = query_of_selection(request, &query) {
            return Self { path, target: format!("{url_path}?{query}"), body: None };
        }
        Self { path, target: format!("{url_path}?{}", query.render_post()), body: Some(request.to_json().into()) }
    }

    /// A request for what a target has.
    pub(super) fn of_target(path: &NodePath, target: String) -> Self {
        Self { path: path.clone(), target, body: None }
    }

    /// Requests a JSON document.
    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        transport: &Transport,
        deadline: Deadline,
    ) -> Result<T, FailedAttempt<ArrayError>> {
        let response = transport.send(self.build(transport), deadline).await?;
        if response.status() != StatusCode::OK {
            return Err(problem::into_failure(response.into_error_response().await, &self.path));
        }
        Ok(response.json(MAX_JSON_BYTES).await?)
    }

    /// Requests the elements.
    pub(super) async fn elements(
        &self,
        transport: &Transport,
        deadline: Deadline,
    ) -> Result<ElementsResponse, FailedAttempt<ArrayError>> {
        self.elements_of(transport.send(self.build(transport), deadline).await?).await
    }

    /// Requests the elements; `None` if their version is still `version`.
    pub(super) async fn elements_if_changed(
        &self,
        transport: &Transport,
        version: Version,
        deadline: Deadline,
    ) -> Result<Option<ElementsResponse>, FailedAttempt<ArrayError>> {
        let request = self.build(transport).header(IF_NONE_MATCH, etag::render(version));
        let response = transport.send(request, deadline).await?;
        match response.status() {
            // If-None-Match, the only precondition of this request, results in 304 for GET and in 412 for POST.
            StatusCode::NOT_MODIFIED | StatusCode::PRECONDITION_FAILED => {
                response.discard().await;
                Ok(None)
            }
            _ => self.elements_of(response).await.map(Some),
        }
    }

    /// Requests the description of the elements.
    pub(super) async fn describe(
        &self,
        transport: &Transport,
        deadline: Deadline,
    ) -> Result<Description, FailedAttempt<ArrayError>> {
        if self.body.is_none() {
            let response = transport.send(transport.request(Method::HEAD, &self.target), deadline).await?;
            if response.status() == StatusCode::OK {
                return Ok(description(&response)?);
            }
        }
        // A HEAD request cannot have a selection as its body, and its response has no problem document.
        Ok(self.elements(transport, deadline).await?.description)
    }

    async fn elements_of(&self, response: Response) -> Result<ElementsResponse, FailedAttempt<ArrayError>> {
        if response.status() != StatusCode::OK {
            return Err(problem::into_failure(response.into_error_response().await, &self.path));
        }
        Ok(ElementsResponse::new(description(&response)?, response))
    }

    fn build(&self, transport: &Transport) -> RequestBuilder {
        match &self.body {
            None => transport.request(Method::GET, &self.target),
            Some(body) => {
                let request = transport.request(Method::POST, &self.target);
                request.header(CONTENT_TYPE, headers::JSON).body(body.clone())
            }
        }
    }
}

/// The query with the selection, if it is short enough for a URL.
fn query_of_selection(request: &ReadRequest, query: &ElementsQuery) -> Option<String> {
    let ReadRequest::Select(selection) = request else { return None };
    let select = Some(selection.to_string()).filter(|text| !text.is_empty());
    let query = ElementsQuery { select, ..query.clone() }.render();
    (query.len() <= MAX_QUERY_BYTES).then_some(query)
}

fn description(response: &Response) -> Result<Description, RequestError> {
    if response.has_content_coding() {
        return Err(RequestError::protocol("elements with a Content-Encoding"));
    }
    Description::from_response(response)
}

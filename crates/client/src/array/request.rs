//! Requests for elements.

use bytes::Bytes;
use meta::{Dialect, NodePath, selection::ReadRequest};
use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, IF_NONE_MATCH},
};
use store::Version;
use wire::{array::Format, etag, headers, query::ElementsQuery, routes};

use super::{ArrayError, Description, incoming::Incoming, problem};
use crate::{
    answer::Answer,
    failure::{Failure, Fault},
    transport::{Clock, Transport},
};

/// The longest query that goes into a URL. A server's own limit is a multiple of it, that of a proxy in between often twice as much.
const MAX_QUERY: usize = 4096;

/// A request, as it is made once or many times.
pub(super) struct Ask {
    path: NodePath,
    target: String,
    /// What is to be read, where that is not in the target.
    body: Option<Bytes>,
}

impl Ask {
    /// A short selection goes into the URL, so that caches understand it, and anything else into a body.
    pub(super) fn of(path: &NodePath, what: &ReadRequest, dialect: Option<Dialect>) -> Self {
        let query = ElementsQuery { format: Some(Format::Raw), dialect, ..ElementsQuery::default() };
        let (at, path) = (routes::array_path(path), path.clone());
        if let Some(query) = in_url(what, &query) {
            return Self { path, target: format!("{at}?{query}"), body: None };
        }
        Self { path, target: format!("{at}?{}", query.render_post()), body: Some(what.to_json().into()) }
    }

    /// Asks for elements.
    pub(super) async fn elements(&self, transport: &Transport, clock: Clock) -> Result<Incoming, Failure<ArrayError>> {
        self.taken(transport.send(self.request(transport), clock).await?).await
    }

    /// Asks for elements; `None` where they are still those of the version `known`.
    pub(super) async fn elements_unless(
        &self,
        transport: &Transport,
        known: Version,
        clock: Clock,
    ) -> Result<Option<Incoming>, Failure<ArrayError>> {
        let request = self.request(transport).header(IF_NONE_MATCH, etag::render(known));
        let answer = transport.send(request, clock).await?;
        match answer.status() {
            // What a `GET` answers with 304 is to a `POST` a condition that fails, and no other one was made.
            StatusCode::NOT_MODIFIED | StatusCode::PRECONDITION_FAILED => {
                answer.discard().await;
                Ok(None)
            }
            _ => self.taken(answer).await.map(Some),
        }
    }

    /// Asks what elements there are.
    pub(super) async fn describe(
        &self,
        transport: &Transport,
        clock: Clock,
    ) -> Result<Description, Failure<ArrayError>> {
        if self.body.is_none() {
            let answer = transport.send(transport.request(Method::HEAD, &self.target), clock).await?;
            if answer.status() == StatusCode::OK {
                return Ok(described(&answer)?);
            }
        }
        // A `HEAD` does not say what is wrong, and has no body that would say what is asked for.
        Ok(self.elements(transport, clock).await?.description)
    }

    /// The elements of an answer that has some.
    async fn taken(&self, answer: Answer) -> Result<Incoming, Failure<ArrayError>> {
        if answer.status() != StatusCode::OK {
            return Err(problem::into_failure(answer.into_problem().await, &self.path));
        }
        let description = described(&answer)?;
        Ok(Incoming::new(description, answer))
    }

    fn request(&self, transport: &Transport) -> RequestBuilder {
        match &self.body {
            None => transport.request(Method::GET, &self.target),
            Some(body) => {
                let request = transport.request(Method::POST, &self.target);
                request.header(CONTENT_TYPE, headers::JSON).body(body.clone())
            }
        }
    }
}

/// The query of a request that is short enough for a URL.
fn in_url(what: &ReadRequest, query: &ElementsQuery) -> Option<String> {
    let ReadRequest::Select(selection) = what else { return None };
    let select = Some(selection.to_string()).filter(|text| !text.is_empty());
    let query = ElementsQuery { select, ..query.clone() }.render();
    (query.len() <= MAX_QUERY).then_some(query)
}

fn described(answer: &Answer) -> Result<Description, Fault> {
    if answer.header(CONTENT_ENCODING).is_some_and(|coding| !coding.eq_ignore_ascii_case("identity")) {
        return Err(Fault::protocol("elements came with a content coding"));
    }
    Description::of(answer)
}

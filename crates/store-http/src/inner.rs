//! The state that the clones of a store share, and requests with their redirects.

use std::{fmt, time::SystemTime};

use reqwest::{
    Client, Method, Response, StatusCode, Url,
    header::{ACCEPT_ENCODING, CACHE_CONTROL, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER},
    redirect, retry,
};
use tokio::sync::OnceCell;
use zarrd_store::{Key, Prefix, StoreError};
use zarrd_store_remote::{Attempts, Pins, Requests};

use crate::{
    answer::{self, Pin},
    error::{OpenError, RequestError},
    failure::{Failure, RedirectFailure},
    options::Options,
    url::{Forbidden, HttpUrl, Redirects},
};

/// The number of redirects that one request follows.
const MAX_REDIRECTS: usize = 3;

/// The largest body of a refusal that is read, in bytes, so that the connection can be used again.
const MAX_DISCARDED: u64 = 64 << 10;

pub(crate) struct Inner {
    pub(crate) url: HttpUrl,
    pub(crate) pins: Pins<Pin>,
    /// The prefix that another zarrd has at the URL, or `None` for another server; empty until that is known.
    pub(crate) zarrd: OnceCell<Option<Prefix>>,
    pub(crate) requests: Requests,
    client: Client,
}

impl Inner {
    pub(crate) fn new(url: &HttpUrl, options: &Options) -> Result<Self, OpenError> {
        let client = Client::builder()
            .user_agent(concat!("zarrd/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(options.connect_timeout)
            .read_timeout(options.read_timeout)
            .retry(retry::never())
            .redirect(redirect::Policy::none())
            .referer(false)
            // Another crate may enable these, and decoded bytes are not those of the value.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .no_proxy();
        let client = match url.is_https() || url.redirects == Redirects::Follow {
            true => client,
            // Without HTTPS the system needs no certificate authorities.
            false => client.tls_certs_only([]),
        };
        let name = options.name.as_deref().unwrap_or_else(|| url.base());
        Ok(Self {
            pins: Pins::new(name),
            zarrd: OnceCell::new(),
            client: client.build().map_err(OpenError::Client)?,
            requests: Requests::new(options.deadline, options.retries),
            url: url.clone(),
        })
    }

    /// The same, with what is known of another zarrd at the URL.
    pub(crate) fn with_zarrd(self, zarrd: OnceCell<Option<Prefix>>) -> Self {
        Self { zarrd, ..self }
    }

    pub(crate) fn error(&self, action: &'static str, below: &str, failure: Failure) -> RequestError {
        RequestError { action, target: format!("{}{below}", self.url.base()), failure }
    }

    pub(crate) fn failed(&self, key: &Key, failure: Failure) -> StoreError {
        StoreError::from(self.error("read", key.as_str(), failure)).at(key.as_str())
    }

    /// The error of a listing.
    pub(crate) fn unlisted(&self, prefix: &Prefix, failure: Failure) -> StoreError {
        StoreError::from(self.error("list", prefix.as_str(), failure)).at(prefix.as_str())
    }

    pub(crate) fn attempts(&self) -> Attempts {
        self.requests.attempts()
    }

    /// Asks for a key, and repeats the request after a failure that may pass.
    pub(crate) async fn request<T>(
        &self,
        method: &Method,
        key: &Key,
        headers: &HeaderMap,
        check: impl Fn(Response) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Some(url) = self.url.of(key) else { return Err(Failure::refused(404)) };
        self.requests.make(|| async { check(self.attempt(method, url.clone(), headers).await?) }).await
    }

    /// Asks for the URL itself, to find out whether there is a server. Nothing of its answer matters: few servers have
    /// anything there.
    pub(crate) async fn probe(&self) -> Result<(), Failure> {
        let Ok(url) = Url::parse(self.url.base()) else { return Err(Failure::refused(404)) };
        let attempt = || async {
            let response = self.client.head(url.clone()).send().await?;
            match response.status() {
                StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => Err(refusal(&response)),
                _ => Ok(()),
            }
        };
        self.requests.make(attempt).await
    }

    /// Makes one request, and follows redirects.
    pub(crate) async fn attempt(
        &self,
        method: &Method,
        mut url: Url,
        headers: &HeaderMap,
    ) -> Result<Response, Failure> {
        for _ in 0..=MAX_REDIRECTS {
            let request = self.client.request(method.clone(), url.clone()).headers(headers.clone());
            let request = request
                .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"))
                // Caches on the way may have old values.
                .header(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            let response = request.send().await?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            let refusal = refusal(&response);
            if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                discard(response).await;
                return Err(refusal);
            }
            let next = location(&response, &url);
            discard(response).await;
            let next = next.ok_or(Failure::Redirect(RedirectFailure::Nowhere))?;
            self.check_redirect(&url, &next).map_err(Failure::Redirect)?;
            if is_directory_redirect(&url, &next) {
                return Err(Failure::refused(404));
            }
            url = next;
        }
        Err(Failure::Redirect(RedirectFailure::TooMany(MAX_REDIRECTS)))
    }

    /// Fails if a redirect is not to be followed.
    fn check_redirect(&self, from: &Url, to: &Url) -> Result<(), RedirectFailure> {
        if !matches!(to.scheme(), "http" | "https") || !to.username().is_empty() || to.password().is_some() {
            return Err(RedirectFailure::Nowhere);
        }
        if from.origin() == to.origin() {
            return Ok(());
        }
        match self.url.redirects {
            Redirects::Within => Err(RedirectFailure::Elsewhere { origin: to.origin().ascii_serialization() }),
            Redirects::Follow if from.scheme() == "https" && to.scheme() == "http" => Err(RedirectFailure::Insecure),
            Redirects::Follow => Ok(()),
        }
    }

    /// Returns the failure unless it means that the key has no value.
    pub(crate) fn absence(&self, failure: Failure) -> Result<(), Failure> {
        match failure.status() {
            Some(404) => Ok(()),
            Some(403) if self.url.forbidden == Forbidden::Absent => Ok(()),
            _ => Err(failure),
        }
    }
}

/// The failure that an answer means which is no success.
fn refusal(response: &Response) -> Failure {
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = retry_after.and_then(|text| answer::delay(text, SystemTime::now()));
    Failure::Refused { status: response.status().as_u16(), retry_after }
}

/// The target of a redirect.
fn location(response: &Response, from: &Url) -> Option<Url> {
    from.join(response.headers().get(LOCATION)?.to_str().ok()?).ok()
}

/// True if a redirect leads from a name to the directory of that name on the same server, which means that there is no
/// file of this name. Another server may have one, and a query is that of a page, such as one for a login.
fn is_directory_redirect(from: &Url, to: &Url) -> bool {
    from.origin() == to.origin() && to.query().is_none() && to.path().strip_suffix('/') == Some(from.path())
}

/// Reads a small body, so that the connection can be used again.
async fn discard(mut response: Response) {
    let mut left = MAX_DISCARDED;
    if response.content_length().is_none_or(|length| length > left) {
        return;
    }
    while let Ok(Some(bytes)) = response.chunk().await {
        left = left.saturating_sub(bytes.len() as u64);
        if left == 0 {
            return;
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("url", &self.url.to_string()).finish_non_exhaustive()
    }
}

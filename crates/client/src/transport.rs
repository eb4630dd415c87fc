//! One request and its answer's head, with nothing known yet of what either means.

use std::{fmt, time::Duration};

use reqwest::{
    Client, Method, RequestBuilder,
    header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderValue},
};
use tokio::time::{Instant, timeout_at};

use crate::{
    BaseUrl, Retries, Timeouts, Token,
    answer::Answer,
    failure::{Fault, Schedule, TransportError},
};

/// How much longer is waited where a server has much to do before it answers.
const PATIENCE: u32 = 10;

/// Makes requests of one server.
pub(crate) struct Transport {
    client: Client,
    base: BaseUrl,
    token: Option<Token>,
    timeouts: Timeouts,
    retries: Retries,
}

/// How long the steps of one operation may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    idle: Duration,
    total: Option<Total>,
}

#[derive(Clone, Copy, Debug)]
struct Total {
    after: Duration,
    at: Instant,
}

impl Transport {
    pub(crate) fn new(
        client: Client,
        base: BaseUrl,
        token: Option<Token>,
        timeouts: Timeouts,
        retries: Retries,
    ) -> Self {
        Self { client, base, token, timeouts, retries }
    }

    pub(crate) fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// A request for a target: a percent-encoded path that begins with `/`, perhaps with a query.
    pub(crate) fn request(&self, method: Method, target: &str) -> RequestBuilder {
        let request = self
            .client
            .request(method, self.base.target(target))
            // Whatever stands between must not compress: lengths and ranges are those of the value.
            .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, token.header()),
            None => request,
        }
    }

    /// Sends a request whose body is in memory.
    pub(crate) async fn send(&self, request: RequestBuilder, clock: Clock) -> Result<Answer, Fault> {
        Ok(Answer::new(clock.wait(request.send()).await??, clock))
    }

    /// The clock of an operation that begins now.
    pub(crate) fn clock(&self) -> Clock {
        let total = self.timeouts.total.and_then(|after| Some(Total { after, at: Instant::now().checked_add(after)? }));
        Clock { idle: self.timeouts.idle, total }
    }

    /// The repetitions of an operation.
    pub(crate) fn schedule(&self, clock: Clock) -> Schedule {
        Schedule::new(&self.retries, clock.total.map(|total| total.at))
    }
}

impl Clock {
    /// The clock of a request whose answer takes the longer the more there is to do.
    pub(crate) fn patient(self) -> Self {
        Self { idle: self.idle.saturating_mul(PATIENCE), ..self }
    }

    /// Waits for the server to do something.
    pub(crate) async fn wait<F: Future>(self, step: F) -> Result<F::Output, TransportError> {
        let idle = Instant::now().checked_add(self.idle);
        match (idle, self.total) {
            (Some(idle), Some(total)) if total.at < idle => total.wait(step).await,
            (Some(idle), _) => timeout_at(idle, step).await.map_err(|_| TransportError::Idle(self.idle)),
            (None, Some(total)) => total.wait(step).await,
            (None, None) => Ok(step.await),
        }
    }

    /// Waits for the caller to do something, which only the limit for the whole operation ends.
    pub(crate) async fn wait_for_caller<F: Future>(self, step: F) -> Result<F::Output, TransportError> {
        match self.total {
            Some(total) => total.wait(step).await,
            None => Ok(step.await),
        }
    }
}

impl Total {
    async fn wait<F: Future>(self, step: F) -> Result<F::Output, TransportError> {
        timeout_at(self.at, step).await.map_err(|_| TransportError::Total(self.after))
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("base", &self.base)
            .field("token", &self.token)
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

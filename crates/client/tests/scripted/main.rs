//! The client with a scripted server: responses that are cut off, invalid or missing.

// `cfg(test)` lets Clippy accept panics in the helpers of tests.
#[cfg(test)]
mod changes;
#[cfg(test)]
mod elements;
#[cfg(test)]
mod reads;
#[cfg(test)]
mod redirects_and_auth;
#[cfg(test)]
mod scripted_server;
#[cfg(test)]
mod shares;
#[cfg(test)]
mod writes;

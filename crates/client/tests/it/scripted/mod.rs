//! The client with a scripted server: responses that are cut off, invalid or missing.

mod changes;
mod elements;
mod reads;
mod redirects_and_auth;
mod scripted_server;
mod shares;
mod writes;

//! Clients without knowledge of zarrd, as packaged by Debian, PyPI and npm: they discover and read data written by
//! other libraries.
//!
//! Unsupported operations are pinned too, with the client's own error message.

mod browser;
mod downloads;
mod gdal;
mod libraries;
mod tokens;

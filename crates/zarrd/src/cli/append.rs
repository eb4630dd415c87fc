//! The arguments of `append`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use zarrd_client::{BaseUrl, Casting, Decode, Dialect, NodePath};

/// The arguments of `append`.
#[derive(Debug, Args)]
pub(crate) struct AppendArgs {
    /// URL of the server
    #[arg(value_name = "URL")]
    pub(crate) server: BaseUrl,
    /// Path of the group, such as lab/weather
    #[arg(value_name = "GROUP", value_parser = super::node_path)]
    pub(crate) group: NodePath,
    /// File that numpy.savez wrote, with an array for each one of the group over the dimension
    #[arg(value_name = "FILE.npz")]
    pub(crate) file: PathBuf,
    /// Name of the dimension that grows, such as time
    #[arg(long, value_name = "NAME")]
    pub(crate) dim: String,
    /// Conversions of types that differ from those of the arrays, as in NumPy: safe, same_kind or unsafe
    #[arg(long, value_name = "RULE", default_value = "same_kind")]
    pub(crate) casting: Casting,
    /// Encoding of elements that are decoded ones, by the attributes of the arrays: none, or cf for the CF conventions
    #[arg(long, value_name = "CONVENTIONS")]
    pub(crate) decode: Option<Conventions>,
    /// Dialect of the group, if the path has nodes of several: v2, v3 or draft [default: v3 before v2 before draft]
    #[arg(long)]
    pub(crate) dialect: Option<Dialect>,
    /// Print a JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Conventions by which elements are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Conventions {
    None,
    Cf,
}

impl From<Conventions> for Decode {
    fn from(conventions: Conventions) -> Self {
        match conventions {
            Conventions::None => Self::None,
            Conventions::Cf => Self::Cf,
        }
    }
}

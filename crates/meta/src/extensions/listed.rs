//! Extensions as documents list them, and what becomes of them.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::{Extension, Host, Meaning, known};
use crate::{
    documents::{DocumentError, Place},
    text::shown,
};

/// The configuration of an extension that has none.
static NO_CONFIGURATION: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

/// An entry of a list of extensions that is known, or need not be understood.
#[derive(Debug)]
pub(crate) struct Listed<'a> {
    place: Place<'a>,
    name: &'a str,
    configuration: Place<'a>,
    must_understand: bool,
}

impl<'a> Listed<'a> {
    /// An entry at `place`. Fails if it is unknown and must be understood.
    pub(crate) fn new(
        place: Place<'a>,
        name: &'a str,
        configuration: Option<Place<'a>>,
        must_understand: bool,
    ) -> Result<Self, DocumentError> {
        if must_understand && known(name).is_none() {
            return Err(DocumentError::Extension { pointer: place.pointer, name: shown(name) });
        }
        let none = || Place { value: &NO_CONFIGURATION, pointer: place.pointer_to("configuration") };
        let configuration = configuration.unwrap_or_else(none);
        configuration.object()?;
        Ok(Self { place, name, configuration, must_understand })
    }

    fn meaning(&self, host: &Host<'_>) -> Result<Meaning, DocumentError> {
        let Some(code) = known(self.name) else { return Ok(Meaning::Ignored) };
        let misplaced =
            || self.place.invalid(format!("is the extension {}, which is not for {}", self.name, host.name()));
        let meaning = code.read(&self.configuration, host).and_then(|meaning| meaning.ok_or_else(misplaced));
        if self.must_understand { meaning } else { Ok(meaning.unwrap_or(Meaning::Ignored)) }
    }
}

/// Reads the extensions of a node, each with regard to what those before it make of the node.
pub(crate) fn understand(listed: &[Listed<'_>], mut host: Host<'_>) -> Result<Vec<Extension>, DocumentError> {
    let extension = |entry: &Listed<'_>| {
        let meaning = entry.meaning(&host)?;
        if let (Host::Array { shape, .. }, Meaning::View { offset }) = (&mut host, &meaning) {
            shape.iter_mut().zip(offset).for_each(|(extent, offset)| *extent = extent.saturating_sub(*offset));
        }
        Ok(Extension {
            name: entry.name.to_owned(),
            configuration: entry.configuration.object()?.clone(),
            must_understand: entry.must_understand,
            meaning,
        })
    };
    listed.iter().map(extension).collect()
}

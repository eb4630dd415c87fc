//! Extensions as documents list them, and what becomes of them.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::{Extension, ExtensionEffect, NodeContext, handler};
use crate::{
    documents::{DocumentError, JsonPath},
    text::truncated,
};

/// The configuration of an extension that has none.
static NO_CONFIGURATION: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

/// An entry of a list of extensions that is known, or need not be understood.
#[derive(Debug)]
pub(crate) struct ExtensionEntry<'a> {
    location: JsonPath<'a>,
    name: &'a str,
    configuration: JsonPath<'a>,
    must_understand: bool,
}

impl<'a> ExtensionEntry<'a> {
    /// An entry at `place`. Fails if it is unknown and must be understood.
    pub(crate) fn new(
        place: JsonPath<'a>,
        name: &'a str,
        configuration: Option<JsonPath<'a>>,
        must_understand: bool,
    ) -> Result<Self, DocumentError> {
        if must_understand && handler(name).is_none() {
            return Err(DocumentError::Extension { pointer: place.pointer, name: truncated(name) });
        }
        let no_configuration = || JsonPath { value: &NO_CONFIGURATION, pointer: place.pointer_to("configuration") };
        let configuration = configuration.unwrap_or_else(no_configuration);
        configuration.object()?;
        Ok(Self { location: place, name, configuration, must_understand })
    }

    fn effect(&self, context: &NodeContext<'_>) -> Result<ExtensionEffect, DocumentError> {
        let Some(handler) = handler(self.name) else { return Ok(ExtensionEffect::Ignored) };
        let wrong_node_type =
            || self.location.invalid(format!("is the extension {}, which is not for {}", self.name, context.name()));
        let effect = handler.read(&self.configuration, context).and_then(|effect| effect.ok_or_else(wrong_node_type));
        if self.must_understand { effect } else { Ok(effect.unwrap_or(ExtensionEffect::Ignored)) }
    }
}

/// Reads the extensions of a node, each with regard to what those before it make of the node.
pub(crate) fn resolve_extensions(
    entries: &[ExtensionEntry<'_>],
    mut context: NodeContext<'_>,
) -> Result<Vec<Extension>, DocumentError> {
    let extension = |entry: &ExtensionEntry<'_>| {
        let effect = entry.effect(&context)?;
        if let (NodeContext::Array { shape, .. }, ExtensionEffect::View { offset }) = (&mut context, &effect) {
            shape.iter_mut().zip(offset).for_each(|(extent, offset)| *extent = extent.saturating_sub(*offset));
        }
        Ok(Extension {
            name: entry.name.to_owned(),
            configuration: entry.configuration.object()?.clone(),
            must_understand: entry.must_understand,
            effect: effect,
        })
    };
    entries.iter().map(extension).collect()
}

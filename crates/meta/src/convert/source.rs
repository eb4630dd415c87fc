//! The source of a conversion: an array with its original document.

use serde_json::{Map, Value, json};

use super::outcome::{ArrayContext, Loss, Unrepresentable};
use crate::{
    ArrayModel, Dialect,
    codecs::{CodecSpec, Namespace},
    data_type::StoredOrder,
    documents::{draft, v2, v3},
    extensions::{Extension, ExtensionEffect},
    json::{Change, Json, Kind, Member},
    model::XARRAY_NAMES,
    text::{pointer_to, truncated},
};

/// An array, and the losses of its conversion.
pub(super) struct Source<'a> {
    pub(super) model: &'a ArrayModel,
    pub(super) context: ArrayContext,
    pub(super) losses: Vec<Loss>,
}

/// The locations of a chain's codecs in the document of an array.
#[derive(Clone, Debug)]
pub(super) enum CodecLocations {
    /// In one list with this pointer.
    List(String),
    /// Each with a pointer of its own.
    Each(Vec<String>),
    /// In several members, as in v2 and the draft.
    Members {
        /// Of the memory order.
        order: &'static str,
        /// Of the data type.
        data_type: &'static str,
        /// The number of codecs that the document does not list.
        unnamed: usize,
        /// Of the filters.
        filters: &'static str,
        /// The number of filters.
        filter_count: usize,
        /// True if the codecs after the filters are in a list `codecs` instead of one `compressor`.
        pipeline: bool,
    },
}

impl<'a> Source<'a> {
    pub(super) fn new(model: &'a ArrayModel, context: ArrayContext) -> Self {
        Self { model, context, losses: Vec::new() }
    }

    pub(super) fn add_loss(&mut self, pointer: impl Into<String>, property: impl Into<String>) {
        self.losses.push(Loss { pointer: pointer.into(), property: property.into() });
    }

    /// Adds a loss for each member that is unknown or belongs only to the source's dialect.
    pub(super) fn add_unknown_members(&mut self) {
        let known = match self.model.dialect {
            Dialect::V2 => v2::ARRAY_MEMBERS,
            Dialect::V3 => v3::ARRAY_MEMBERS,
            Dialect::Draft => draft::ARRAY_MEMBERS,
        };
        for name in unknown_members(&self.model.document, known) {
            if self.model.dialect == Dialect::V2 && name == "attributes" {
                continue;
            }
            self.add_loss(pointer_to("", &name), "a member that is not in the specification");
        }
        if self.model.dialect != Dialect::Draft {
            return;
        }
        if let Some(grid) = self.model.document.get("chunk_grid") {
            for name in unknown_members(&grid, &["type", "chunk_shape", "separator"]) {
                self.add_loss(pointer_to("/chunk_grid", &name), "a member that is not in the specification");
            }
        }
        let fallback = self.model.document.get("data_type").and_then(|data_type| data_type.get("fallback"));
        if fallback.is_some_and(|fallback| !fallback.is_null()) {
            self.add_loss("/data_type/fallback", "the fallback for readers that do not support the data type");
        }
    }

    pub(super) fn data_type_pointer(&self) -> &'static str {
        match self.model.dialect {
            Dialect::V2 => "/dtype",
            Dialect::V3 | Dialect::Draft => "/data_type",
        }
    }

    /// The locations of a chain's codecs; for shards of the draft, of the innermost chain.
    pub(super) fn codec_locations(&self, chain: &[CodecSpec]) -> CodecLocations {
        let (order, filters) = match self.model.dialect {
            Dialect::V3 => return CodecLocations::List("/codecs".to_owned()),
            Dialect::V2 => ("/order", "/filters"),
            Dialect::Draft => ("/chunk_memory_layout", "/attributes/filters"),
        };
        let list = match self.model.dialect {
            Dialect::V2 => self.model.document.get("filters"),
            _ => draft::filters_of(&self.model.attributes),
        };
        let named = chain.iter().position(|codec| codec.namespace == Namespace::Numcodecs);
        CodecLocations::Members {
            order,
            data_type: self.data_type_pointer(),
            unnamed: named.unwrap_or(chain.len()),
            filters,
            filter_count: list.map_or(0, |list| list.items().count()),
            pipeline: self.model.document.get("codecs").is_some_and(|codecs| !codecs.is_null()),
        }
    }

    /// The shape of the chunks.
    pub(super) fn chunk_shape(&self) -> Result<Vec<u64>, Unrepresentable> {
        let regular = || Unrepresentable::new("/chunk_grid", "is not a regular grid");
        self.model.grid.regular_shape().ok_or_else(regular)
    }

    /// The fill value in a dialect. `null` stays if it means the same.
    pub(super) fn fill_value(&mut self, to: Dialect, order: &StoredOrder) -> Result<Value, Unrepresentable> {
        let ArrayModel { data_type, fill_value, document, .. } = self.model;
        if document.get("fill_value").is_some_and(|fill_value| fill_value.is_null()) {
            if to != Dialect::V3 && data_type.fill_value(&Value::Null, to).as_ref() == Ok(fill_value) {
                return Ok(Value::Null);
            }
            self.add_loss("/fill_value", "that unwritten elements are undefined");
        }
        self.element_json(fill_value, to, order)
    }

    /// An element as the fill value of a dialect.
    pub(super) fn element_json(
        &self,
        element: &[u8],
        to: Dialect,
        order: &StoredOrder,
    ) -> Result<Value, Unrepresentable> {
        let data_type = &self.model.data_type;
        let unrepresentable = |reason| Unrepresentable::new("/fill_value", reason);
        let json = data_type
            .stored_fill_value_json(element, to, order)
            .map_err(|error| unrepresentable(format!("is {}, which {to} cannot represent", error.feature)))?;
        match data_type.stored_fill_value(&json, to, order) {
            Ok(read) if read == element => Ok(json),
            _ => Err(unrepresentable(format!("is an element that {to} cannot represent"))),
        }
    }

    /// The attributes for a dialect that stores dimension names among them.
    pub(super) fn attributes_with_names(&mut self) -> Json {
        let attributes = self.user_attributes();
        if self.model.dialect != Dialect::V3 {
            return attributes;
        }
        let listed = self.model.document.get("dimension_names").is_some_and(|names| names.kind() == Kind::Array);
        let names: Option<Vec<&str>> = self.model.dimension_names.iter().map(Option::as_deref).collect();
        let named = self.model.dimension_names.iter().any(Option::is_some);
        match names {
            Some(names) if listed || self.is_named_scalar() => {
                let names = json!(names);
                if attributes.get(XARRAY_NAMES).is_some_and(|other| other != names) {
                    self.add_loss(
                        pointer_to("/attributes", XARRAY_NAMES),
                        "an attribute whose name means dimension_names there",
                    );
                }
                attributes.with(XARRAY_NAMES, Change::Set(names))
            }
            _ => {
                if named {
                    self.add_loss("/dimension_names", "dimension names, because other dimensions are unnamed");
                }
                if let Some((_, pointer)) = self.xarray_names() {
                    self.add_loss(pointer, "that this attribute is not the dimension names");
                }
                attributes
            }
        }
    }

    /// The attributes, and the dimension names for a dialect that has a member for them.
    pub(super) fn attributes_and_names(&self) -> (Json, Option<Value>) {
        let attributes = self.user_attributes();
        match self.xarray_names() {
            Some((names, _)) => (attributes.without(XARRAY_NAMES), Some(json!(names))),
            None => (attributes, None),
        }
    }

    /// True for a scalar without dimension names in a group of arrays that have them. xarray omits the empty list in v3
    /// and needs it in v2.
    fn is_named_scalar(&self) -> bool {
        self.model.shape.is_empty() && self.context.is_in_named_group
    }

    /// xarray's dimension names with their pointer, if the attribute is valid.
    fn xarray_names(&self) -> Option<(Vec<String>, String)> {
        let names = names_in(&self.model.attributes, self.model.shape.len())?;
        Some((names, pointer_to("/attributes", XARRAY_NAMES)))
    }

    /// The attributes without the filters that zarr-python stores there in the draft.
    fn user_attributes(&self) -> Json {
        let attributes = &self.model.attributes;
        match self.model.dialect == Dialect::Draft && draft::filters_of(attributes).is_some() {
            true => attributes.without(draft::FILTERS),
            false => attributes.clone(),
        }
    }
}

impl CodecLocations {
    /// The location of the codec at an index of the chain.
    pub(super) fn of(&self, index: usize) -> String {
        match self {
            Self::List(list) => format!("{list}/{index}"),
            Self::Each(pointers) => pointers.get(index).or(pointers.last()).cloned().unwrap_or_default(),
            Self::Members { order, data_type, unnamed, filters, filter_count, pipeline } => {
                match index.checked_sub(*unnamed) {
                    // The first of two unlisted codecs is the memory order.
                    None if index.saturating_add(1) < *unnamed => (*order).to_owned(),
                    None => (*data_type).to_owned(),
                    Some(filter) if filter < *filter_count => format!("{filters}/{filter}"),
                    Some(codec) if *pipeline => format!("/codecs/{}", codec.saturating_sub(*filter_count)),
                    Some(_) => "/compressor".to_owned(),
                }
            }
        }
    }
}

/// The dimension names that xarray reads from attributes.
pub(super) fn names_in(attributes: &Json, rank: usize) -> Option<Vec<String>> {
    let names = attributes.get(XARRAY_NAMES).filter(|names| names.kind() == Kind::Array)?;
    if names.items().take(rank.saturating_add(1)).count() != rank {
        return None;
    }
    names.items().map(|name| name.to_text()).collect()
}

/// The names of an object's members that are not known.
pub(super) fn unknown_members(document: &Json, known: &[&str]) -> Vec<String> {
    let name = |member: Member| member.name().unwrap_or_else(|| member.quoted_name().as_str().to_owned());
    document.members().filter(|member| !known.iter().any(|name| member.is_named(name))).map(name).collect()
}

/// The extensions of a node in another dialect, and the losses. In v3 only extensions with an effect are retained;
/// others would make the node unreadable there.
pub(super) fn extensions(extensions: &[Extension], to: Dialect) -> (Vec<Value>, Vec<Loss>) {
    let mut converted = Vec::new();
    let mut losses = Vec::new();
    for (index, extension) in extensions.iter().enumerate() {
        let name = match to {
            Dialect::Draft => "extension",
            Dialect::V3 if extension.effect != ExtensionEffect::Ignored => "name",
            Dialect::V2 | Dialect::V3 => {
                let property = format!("the extension {}", truncated(&extension.name));
                losses.push(Loss { pointer: format!("/extensions/{index}"), property });
                continue;
            }
        };
        converted.push(json!({name: extension.name, "configuration": extension.configuration, "must_understand": extension.must_understand}));
    }
    (converted, losses)
}

/// A node document with these members, and with attributes in their notation.
pub(super) fn node_document(members: Map<String, Value>, attributes: Json) -> Json {
    Json::from(members).with("attributes", Change::SetText(attributes))
}

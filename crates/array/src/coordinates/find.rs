//! From names to dimensions and coordinates.

use std::sync::Arc;

use zarrd_cf::is_characters;
use zarrd_meta::{ArrayModel, Dialect, NodePath, json::Json};
use zarrd_store::Precondition;

use super::error::CoordinateError;
use crate::{
    context::Context,
    error::ArrayError,
    node::{broken::Broken, resolved::ResolvedArray},
    write::commit::WriteTarget,
};

/// A dimension of an array, and its coordinate.
pub(crate) struct Located {
    pub(crate) dimension: usize,
    /// The path of the coordinate.
    pub(crate) coordinate: NodePath,
    /// The attributes of the coordinate.
    pub(crate) attributes: Json,
}

/// The number of a dimension, given its name or number; the first of several with one name.
pub(super) fn dimension_of(model: &ArrayModel, name: &str) -> Option<usize> {
    dimension_of_name(model, name).or_else(|| {
        let number = name.parse::<usize>().ok()?;
        (number < model.shape.len() && number.to_string() == name).then_some(number)
    })
}

/// The name of a dimension, or its number if it has no name, or one that stands for an earlier dimension.
pub(super) fn name_of(model: &ArrayModel, dimension: usize) -> String {
    let name = model.dimension_names.get(dimension).and_then(Option::as_ref);
    match name.filter(|name| dimension_of_name(model, name) == Some(dimension)) {
        Some(name) => name.clone(),
        None => dimension.to_string(),
    }
}

/// The error for a name that is none of a dimension.
pub(super) fn unknown_dimension(model: &ArrayModel, name: &str) -> CoordinateError {
    let known = (0..model.shape.len()).map(|dimension| name_of(model, dimension)).collect();
    CoordinateError::UnknownDimension { name: name.chars().take(64).collect(), known }
}

/// Finds the coordinate of a name: that of a dimension, or another array over one dimension.
pub(crate) async fn locate(
    context: &Context,
    path: &NodePath,
    model: &ArrayModel,
    name: &str,
) -> Result<Located, CoordinateError> {
    match dimension_of(model, name) {
        Some(dimension) => locate_of(context, path, model, dimension).await,
        None => find(context, path, model, (name, None)).await?.ok_or_else(|| unknown_dimension(model, name)),
    }
}

/// Finds the coordinate of a dimension, given its number.
pub(super) async fn locate_of(
    context: &Context,
    path: &NodePath,
    model: &ArrayModel,
    dimension: usize,
) -> Result<Located, CoordinateError> {
    let located = match model.dimension_names.get(dimension).and_then(Option::as_ref) {
        Some(name) => find(context, path, model, (name, Some(dimension))).await?,
        // A dimension without a name has no coordinate.
        None => None,
    };
    located.ok_or_else(|| no_coordinate(model, dimension))
}

/// Finds an array over one dimension, that of this number if one is given, in the group of an array and those above.
async fn find(
    context: &Context,
    path: &NodePath,
    model: &ArrayModel,
    (array_name, dimension): (&str, Option<usize>),
) -> Result<Option<Located>, CoordinateError> {
    let groups = path.parent().into_iter().flat_map(|group| [group.clone()].into_iter().chain(group.ancestors()));
    for group in groups {
        let Ok(coordinate) = group.member(array_name) else { break };
        if !context.can_read(&coordinate) {
            continue;
        }
        let Some(found) = resolve(context, &coordinate, model.dialect).await? else { continue };
        if let Some(over) = over_dimension(found.array.model(), model, array_name, dimension) {
            let attributes = found.array.model().attributes.clone();
            return Ok(Some(Located { dimension: over, coordinate, attributes }));
        }
    }
    Ok(None)
}

fn no_coordinate(model: &ArrayModel, dimension: usize) -> CoordinateError {
    CoordinateError::NoCoordinate { dimension: name_of(model, dimension) }
}

/// The array at a path; `None` if there is none.
async fn resolve(
    context: &Context,
    path: &NodePath,
    dialect: Dialect,
) -> Result<Option<Arc<ResolvedArray>>, CoordinateError> {
    let target = WriteTarget { path: path.clone(), dialect: Some(dialect), condition: Precondition::none() };
    match target.resolve_current(context).await {
        Ok(resolved) => Ok(Some(resolved)),
        Err(ArrayError::NoSuchNode { .. } | ArrayError::NotAnArray { .. } | ArrayError::Broken(Broken { .. })) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The dimension of an array that another, one-dimensional array is over, or one of characters with a second dimension:
/// that of this number, whose name is `name`, if one is given; `None` for other arrays.
///
/// A coordinate of the dimension's own name may lack dimension names. If several dimensions have this name, it is over
/// each that has its extent.
fn over_dimension(coordinate: &ArrayModel, model: &ArrayModel, name: &str, dimension: Option<usize>) -> Option<usize> {
    let extent = match (coordinate.view_shape().as_slice(), is_characters(coordinate)) {
        ([extent], false) | ([extent, _], true) => *extent,
        _ => return None,
    };
    let own_name = coordinate.dimension_names.first().cloned().flatten();
    let over = match (own_name, dimension) {
        (Some(own_name), None) => dimension_of_name(model, &own_name)?,
        (Some(own_name), Some(_)) if own_name != name => return None,
        (_, dimension) => dimension?,
    };
    (model.view_shape().get(over) == Some(&extent)).then_some(over)
}

fn dimension_of_name(model: &ArrayModel, name: &str) -> Option<usize> {
    model.dimension_names.iter().position(|dimension| dimension.as_deref() == Some(name))
}

//! The levels and channels of images of OME-Zarr, which a request names in place of arrays and indices.

use std::sync::Arc;

use zarrd_meta::{
    ArrayModel, NodePath,
    ome::Image,
    selection::{DimensionSelection, ReadRequest},
};
use zarrd_wire::query::{CHANNELS, ElementsQuery, LEVEL, QueryError, ShownChannels};

use super::encode::ShownChannel;
use crate::{engine::Engine, error::ApiError};

/// The colours of channels without one of their own, one after the other; a single channel is white.
const COLORS: [[u8; 3]; 6] = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [0, 255, 255], [255, 0, 255], [255, 255, 0]];
const WHITE: [u8; 3] = [255; 3];

/// The most channels that are shown unless they are listed.
const MAX_ACTIVE: u64 = 128;

/// The array that a request reads.
pub(super) struct Located {
    pub(super) path: NodePath,
    /// The channels of a picture, if it shows several.
    pub(super) channels: Option<Arc<PictureChannels>>,
}

/// The channels that a picture shows.
#[derive(Debug)]
pub(super) struct PictureChannels {
    wanted: ShownChannels,
    image: Image,
}

/// Finds the array that a query means: a level, if it names one, and otherwise the array at the path itself. Names of
/// the image's axes in the query become numbers of dimensions where the array does not name these.
///
/// # Errors
///
/// A path that is no image, and a level that it does not have.
pub(super) async fn locate(engine: &Engine, path: NodePath, query: &mut ElementsQuery) -> Result<Located, ApiError> {
    if query.level.is_none() && query.channels.is_none() {
        return Ok(Located { path, channels: None });
    }
    // Rare ways are boxed, so that others do not take their memory.
    Box::pin(locate_in_image(engine, path, query)).await
}

async fn locate_in_image(engine: &Engine, path: NodePath, query: &mut ElementsQuery) -> Result<Located, ApiError> {
    let image = engine.arrays.image(&path, query.dialect).await?;
    let (path, image) = match (image, query.level) {
        (Some(image), level) => {
            let missing = QueryError::Invalid { name: LEVEL, expected: "is the number of a level of the image" };
            let level = image.levels.get(usize::from(level.unwrap_or_default())).ok_or(missing)?;
            let below = format!("{}{}", path.key_prefix(), level.path);
            let wrong = QueryError::Invalid { name: LEVEL, expected: "is a level whose path the image has" };
            (NodePath::parse(&below).map_err(|_| wrong)?, image)
        }
        (None, Some(_)) => {
            let expected = "is supported by images of OME-Zarr: groups with `multiscales`";
            return Err(QueryError::Invalid { name: LEVEL, expected }.into());
        }
        // The path of a level itself; without an image above it, channels have no colours of their own.
        (None, None) => (path.clone(), engine.arrays.image_above(&path, query.dialect).await?.unwrap_or_default()),
    };
    number_axes(engine, (&path, &image), query).await?;
    let channels = query.channels.clone().map(|wanted| Arc::new(PictureChannels { wanted, image }));
    Ok(Located { path, channels })
}

/// Numbers the dimensions that the query calls by names of the image's axes, unless the array at `path` has these names.
async fn number_axes(
    engine: &Engine,
    (path, image): (&NodePath, &Image),
    query: &mut ElementsQuery,
) -> Result<(), ApiError> {
    let dimensions = query.dimensions.iter_mut().map(|parameter| &mut parameter.dimension);
    let coarsened = query.compute.coarsen.iter_mut().map(|(name, _)| name);
    let names = dimensions.chain(query.compute.axis.iter_mut().flatten()).chain(coarsened);
    let place = |name: &String| image.axes.iter().position(|axis| axis.name == *name);
    let axes: Vec<_> = names.filter_map(|name| place(name).map(|axis| (name, axis))).collect();
    if axes.is_empty() {
        return Ok(());
    }
    let (model, _) = engine.arrays.model(path, query.dialect).await?;
    for (name, axis) in axes {
        if !model.dimension_names.iter().flatten().any(|own| *own == *name) {
            *name = axis.to_string();
        }
    }
    Ok(())
}

impl PictureChannels {
    /// The request for the channels of an array, and their colours. The selection of all other dimensions is unchanged.
    pub(super) fn select(
        &self,
        request: &ReadRequest,
        model: &ArrayModel,
    ) -> Result<(ReadRequest, Arc<[ShownChannel]>), ApiError> {
        let invalid = |expected| ApiError::from(QueryError::Invalid { name: CHANNELS, expected });
        let ReadRequest::Select(selection) = request else {
            return Err(invalid("is not supported for points and stacks"));
        };
        let shape = model.view_shape();
        let mut region = selection.resolve(&shape).map_err(zarrd_array::ArrayError::from)?;
        let dimension = self.dimension(model).filter(|dimension| *dimension < shape.len());
        let dimension = dimension.ok_or_else(|| invalid("needs a dimension of channels, which is called `c`"))?;
        let count = shape.get(dimension).copied().unwrap_or_default();
        let indices = self.indices(count);
        if region.dimensions.iter().take(dimension).any(|before| before.extent().is_some()) {
            return Err(invalid("needs one index of each dimension before the channels"));
        }
        if let Some(selected) = region.dimensions.get_mut(dimension) {
            *selected = DimensionSelection::List(indices.iter().copied().collect());
        }
        let shown = indices.iter().map(|index| self.shown(*index, count)).collect();
        Ok((ReadRequest::Select(region.to_selection()), shown))
    }

    /// The dimension of the channels: as the image says, or by its name.
    fn dimension(&self, model: &ArrayModel) -> Option<usize> {
        let is_channel = |name: &Option<String>| matches!(name.as_deref(), Some("c" | "channel"));
        self.image.channel_dimension().or_else(|| model.dimension_names.iter().position(is_channel))
    }

    /// The indices of the channels, of which there are `count`.
    fn indices(&self, count: u64) -> Vec<u64> {
        let channels = &self.image.channels;
        let is_active = |index: &u64| {
            let channel = usize::try_from(*index).ok().and_then(|index| channels.get(index));
            channel.is_none_or(|channel| channel.is_active)
        };
        match &self.wanted {
            ShownChannels::Listed(indices) => indices.clone(),
            ShownChannels::Active => {
                let active: Vec<u64> = (0..count.min(MAX_ACTIVE)).filter(is_active).collect();
                if active.is_empty() { (0..count.min(MAX_ACTIVE)).collect() } else { active }
            }
        }
    }

    fn shown(&self, index: u64, count: u64) -> ShownChannel {
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        let channel = self.image.channels.get(place);
        let default = if count == 1 { WHITE } else { COLORS.get(place % COLORS.len()).copied().unwrap_or(WHITE) };
        ShownChannel {
            color: channel.and_then(|channel| channel.color).unwrap_or(default),
            window: channel.and_then(|channel| channel.window),
        }
    }
}

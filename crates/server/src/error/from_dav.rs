//! Errors of WebDAV.

use std::sync::Arc;

use http::Method;
use zarrd_wire::{
    dav,
    problem::{Members, Problem, ProblemType},
};

use super::{ApiError, Parts};

impl From<dav::XmlError> for ApiError {
    fn from(error: dav::XmlError) -> Self {
        Self::new(Problem::new(ProblemType::InvalidBody).with_detail(error.to_string()))
    }
}

impl ApiError {
    /// The client would take keys for others: at the root of a listener of its own it does not.
    pub(crate) fn root_required(method: &Method, allow: &str) -> Self {
        let detail = "object_store takes the whole path of a listed URL for a key: give it the address of --dav-listen, \
                      without a path";
        let error = Self::method_not_allowed(method, allow);
        match Arc::try_unwrap(error.0) {
            Ok(mut parts) => {
                detail.clone_into(&mut parts.problem.detail);
                Self(Arc::new(parts))
            }
            Err(shared) => Self(shared),
        }
    }

    /// There are more resources below a collection than one response describes.
    pub(crate) fn propfind_finite_depth(limit: u64) -> Self {
        let members = Members { limit: Some(limit), ..Members::default() };
        let problem = Problem::new(ProblemType::PropfindFiniteDepth).with_members(members);
        let body = Some((dav::XML, dav::FINITE_DEPTH_ERROR));
        Self(Arc::new(Parts { problem, headers: Vec::new(), cause: None, body }))
    }

    /// The destination is, contains, or is below the source.
    pub(crate) fn overlapping_destination(detail: impl Into<String>) -> Self {
        Self::new(Problem::new(ProblemType::OverlappingDestination).with_detail(detail))
    }

    /// A destination exists that must not be replaced; `name` is its key or prefix.
    pub(crate) fn destination_exists(name: &str) -> Self {
        let detail = format!("{name} exists, and Overwrite is F");
        Self::new(Problem::new(ProblemType::PreconditionFailed).with_detail(detail))
    }

    /// The changes do not fit into one commit.
    pub(crate) fn too_many_changes(changes: u64, limit: u64) -> Self {
        let members = Members { changes: Some(changes), limit: Some(limit), ..Members::default() };
        let detail = format!("this takes {changes} changes, and one commit has at most {limit}");
        Self::new(Problem::new(ProblemType::TooManyChanges).with_detail(detail).with_members(members))
    }

    /// Other writers changed what the request reads or changes, at each attempt.
    pub(crate) fn too_many_conflicts() -> Self {
        Self::retry_later(
            ProblemType::TooManyConflicts,
            "others kept changing the source or the destination".to_owned(),
        )
    }
}

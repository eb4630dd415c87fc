//! Creation of hierarchies.

/// The treatment of an existing node that differs, and of stray keys at the path of a new array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfExists {
    /// Fail with the differences, or with a stray key.
    #[default]
    Fail,
    /// Replace the node, with everything below it. An array keeps its chunks if only its attributes and dimension names
    /// differ. Stray keys are erased.
    Replace,
    /// As [`Fail`](Self::Fail), but stray keys stay, and those named like chunks become chunks of the new array.
    Adopt,
}

/// The treatment of properties that the dialect cannot represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPolicy {
    /// Fail, with the list of losses.
    #[default]
    Reject,
    /// Drop the properties, and report them.
    Allow,
}

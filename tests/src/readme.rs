//! Running what the README says.

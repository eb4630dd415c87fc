//! The documents of the three dialects.

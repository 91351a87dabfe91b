//! Properties of all kinds.

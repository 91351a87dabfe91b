//! metaroce-core

//! metaroce-soft

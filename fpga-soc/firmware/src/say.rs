//! Telling what happens: by `defmt` on a board, by `log` on a host, or not at all.

/// Something that a user wants to know.
macro_rules! info {
    ($($arg:tt)*) => {{
        #[cfg(feature = "defmt")]
        defmt::info!($($arg)*);
        #[cfg(feature = "log")]
        log::info!($($arg)*);
        #[cfg(not(any(feature = "defmt", feature = "log")))]
        let _ = core::format_args!($($arg)*);
    }};
}

/// Something that should not have happened.
macro_rules! warning {
    ($($arg:tt)*) => {{
        #[cfg(feature = "defmt")]
        defmt::warn!($($arg)*);
        #[cfg(feature = "log")]
        log::warn!($($arg)*);
        #[cfg(not(any(feature = "defmt", feature = "log")))]
        let _ = core::format_args!($($arg)*);
    }};
}

pub(crate) use {info, warning};

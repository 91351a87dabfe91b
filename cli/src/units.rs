//! Sizes, times and rates as people write them.

use metaroce_sim::units::parse_time;
pub use metaroce_sim::units::{parse_share, parse_size};
use std::time::Duration;

/// A time such as `500ms`, `2s`, `1m`; a bare number is seconds.
///
/// # Errors
/// A sentence that says what would do.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let bare = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let time = if bare {
        parse_time(&format!("{text}s"))
    } else {
        parse_time(text)
    };
    time.map(|time| Duration::from_nanos(time.ns()))
}

/// Bytes for people.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 {
        format!("{value} {}", UNITS[unit])
    } else {
        format!("{value:.2} {}", UNITS[unit])
    }
}

/// Bytes in a time as a rate in Gbit/s.
#[must_use]
pub fn gbit_per_second(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() {
        0.0
    } else {
        bytes as f64 * 8.0 / time.as_secs_f64() / 1e9
    }
}

/// A whole number with separators.
#[must_use]
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_seconds() {
        assert_eq!(parse_duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("20ms"), Ok(Duration::from_millis(20)));
        assert!(parse_duration("-1s").is_err());
    }

    #[test]
    fn numbers_are_shown_for_people() {
        assert_eq!(show_size(65_536), "64 KiB");
        assert_eq!(show_size(1_500_000), "1.43 MiB");
        assert_eq!(show_count(1_234_567), "1,234,567");
        assert_eq!(show_count(12), "12");
        assert!((gbit_per_second(1_250_000_000, Duration::from_secs(1)) - 10.0).abs() < 1e-9);
    }
}

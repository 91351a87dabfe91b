//! Sizes, times and rates as people write them.

use std::time::Duration;

/// A number of bytes such as `64`, `64K`, `4MiB`, `1G` (all binary).
///
/// # Errors
/// A sentence that says what would do.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let shift = match unit.trim() {
        "" | "B" => 0,
        "k" | "K" | "KB" | "KiB" => 10,
        "M" | "MB" | "MiB" => 20,
        "G" | "GB" | "GiB" => 30,
        "T" | "TB" | "TiB" => 40,
        other => {
            return Err(format!(
                "unknown unit `{other}`: use K, M or G, such as 64K"
            ));
        }
    };
    let value: f64 = digits
        .parse()
        .map_err(|_| format!("`{text}` is not a size, such as 64K or 1GiB"))?;
    let bytes = value * 2f64.powi(shift);
    if bytes.fract() != 0.0 || bytes >= 2f64.powi(53) {
        return Err(format!(
            "`{text}` is not a whole number of bytes below 8 PiB"
        ));
    }
    Ok(bytes as u64)
}

/// A time such as `500ms`, `2s`, `1m`; a bare number is seconds.
///
/// # Errors
/// A sentence that says what would do.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let scale = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        other => {
            return Err(format!(
                "unknown unit `{other}`: use us, ms, s or m, such as 500ms"
            ));
        }
    };
    let value: f64 = digits
        .parse()
        .map_err(|_| format!("`{text}` is not a time, such as 500ms or 10s"))?;
    Duration::try_from_secs_f64(value * scale).map_err(|_| format!("`{text}` is too long"))
}

/// A share such as `1%` or `0.01`.
///
/// # Errors
/// A sentence that says what would do.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let value: Option<f64> = match text.strip_suffix('%') {
        Some(percent) => percent
            .trim()
            .parse()
            .ok()
            .map(|percent: f64| percent / 100.0),
        None => text.parse().ok(),
    };
    value
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("`{text}` is not a share: write 1% or 0.01"))
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
    fn sizes_times_and_shares_are_read() {
        assert_eq!(parse_size("64"), Ok(64));
        assert_eq!(parse_size("1.5K"), Ok(1536));
        assert_eq!(parse_size("1GiB"), Ok(1 << 30));
        assert!(parse_size("64q").unwrap_err().contains("unknown unit"));
        assert!(parse_size("0.3").is_err());
        assert_eq!(parse_duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("20ms"), Ok(Duration::from_millis(20)));
        assert!(parse_duration("-1s").is_err());
        assert_eq!(parse_share("1%"), Ok(0.01));
        assert!(parse_share("2").is_err());
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

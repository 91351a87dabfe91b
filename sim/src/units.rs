//! Sizes, times, rates and shares as people write them, read exactly.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

use crate::random::Probability;
use crate::time::Time;

/// The number at the start of a text, and the unit behind it.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | '_'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

/// A decimal number times `scale`, if that is a whole number that fits.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 18 {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let divisor = 10u128.pow(fraction.len() as u32);
    let product = digits.checked_mul(u128::from(scale))?;
    (product % divisor == 0)
        .then(|| u64::try_from(product / divisor).ok())
        .flatten()
}

/// A number of bytes such as `64`, `64K`, `4MiB`, `1G` (all binary); `unlimited` is the largest number.
///
/// # Errors
/// A sentence that says what would do.
pub fn parse_size(text: &str) -> Result<u64, String> {
    if text == "unlimited" {
        return Ok(u64::MAX);
    }
    let (number, unit) = split(text);
    let shift = match unit {
        "" | "B" => 0,
        "k" | "K" | "KB" | "KiB" => 10,
        "M" | "MB" | "MiB" => 20,
        "G" | "GB" | "GiB" => 30,
        "T" | "TB" | "TiB" => 40,
        other if number.is_empty() => {
            return Err(format!("`{other}` is not a size, such as 64K or 1GiB"));
        }
        other => {
            return Err(format!(
                "unknown unit `{other}`: use K, M or G, such as 64K"
            ));
        }
    };
    if number.is_empty() {
        return Err(format!("`{text}` is not a size, such as 64K or 1GiB"));
    }
    scaled(number, 1 << shift)
        .filter(|&bytes| bytes < 1 << 53)
        .ok_or_else(|| format!("`{text}` is not a whole number of bytes below 8 PiB"))
}

/// A time such as `14.09us`, `500ms`, `2s`, `1m`, exact to the picosecond; a bare number is nanoseconds. `never` is later than all.
///
/// # Errors
/// A sentence that says what would do.
pub fn parse_time(text: &str) -> Result<Time, String> {
    if text == "never" {
        return Ok(Time::NEVER);
    }
    let (number, unit) = split(text);
    let scale = match unit {
        "ps" => 1,
        "" | "ns" => 1_000,
        "us" => 1_000_000,
        "ms" => 1_000_000_000,
        "s" => 1_000_000_000_000,
        "m" | "min" => 60_000_000_000_000,
        other if !number.is_empty() => {
            return Err(format!(
                "unknown unit `{other}`: use ns, us, ms, s or m, such as 500ms"
            ));
        }
        _ => return Err(format!("`{text}` is not a time, such as 500ms or 10s")),
    };
    scaled(number, scale)
        .map(Time::from_ps)
        .ok_or_else(|| format!("`{text}` is not a time from 1 ps to 200 days"))
}

/// A rate such as `100Gb/s`, `400G`, `25000Mb/s`, in Mbit/s; a bare number is Mbit/s.
///
/// # Errors
/// A sentence that says what would do.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let scale = match unit {
        "" | "M" | "Mb/s" | "Mbit/s" | "Mbps" => 1,
        "G" | "Gb/s" | "Gbit/s" | "Gbps" => 1_000,
        "T" | "Tb/s" | "Tbit/s" | "Tbps" => 1_000_000,
        _ => return Err(format!("`{text}` is not a rate, such as 100Gb/s")),
    };
    scaled(number, scale).ok_or_else(|| format!("`{text}` is not a whole number of Mbit/s"))
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

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if *self == Self::NEVER {
            return serializer.serialize_str("never");
        }
        let ps = self.ps();
        let units = [
            (1_000_000_000_000, "s"),
            (1_000_000_000, "ms"),
            (1_000_000, "us"),
            (1_000, "ns"),
        ];
        let whole = units
            .iter()
            .find(|(unit, _)| ps.is_multiple_of(*unit) && ps > 0);
        let (unit, name) = whole.unwrap_or(&(1, "ps"));
        serializer.collect_str(&format_args!("{}{name}", ps / unit))
    }
}

/// Reads a time: text with a unit, or whole nanoseconds.
struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;
    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a time such as \"14.09us\", or whole nanoseconds")
    }
    fn visit_u64<E: Error>(self, ns: u64) -> Result<Time, E> {
        Ok(Time::from_ns(ns))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
        parse_time(text).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

impl Serialize for Probability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

/// Reads a probability: a share as text or as a number.
struct ProbabilityVisitor;

impl Visitor<'_> for ProbabilityVisitor {
    type Value = Probability;
    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a probability such as \"1%\" or 0.01")
    }
    fn visit_u64<E: Error>(self, value: u64) -> Result<Probability, E> {
        self.visit_f64(value as f64)
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Probability, E> {
        if (0.0..=1.0).contains(&value) {
            Ok(Probability::new(value))
        } else {
            Err(E::custom(format!(
                "{value} is not a probability: write \"1%\" or 0.01"
            )))
        }
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Probability, E> {
        parse_share(text).map(Probability::new).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ProbabilityVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_rates_and_shares_are_read() {
        assert_eq!(parse_size("64"), Ok(64));
        assert_eq!(parse_size("1.5K"), Ok(1536));
        assert_eq!(parse_size("1GiB"), Ok(1 << 30));
        assert!(parse_size("64q").unwrap_err().contains("unknown unit"));
        assert!(parse_size("0.3").is_err() && parse_size("").is_err() && parse_size("-1").is_err());
        assert_eq!(parse_time("14.09us"), Ok(Time::from_ps(14_090_000)));
        assert_eq!(parse_time("7"), Ok(Time::from_ns(7)));
        assert_eq!(parse_time("1.5m"), Ok(Time::from_ms(90_000)));
        assert!(parse_time("us").is_err() && parse_time("-1s").is_err());
        assert!(parse_time("0.1ps").is_err() && parse_time("1h").is_err());
        assert_eq!(parse_rate("400Gb/s"), Ok(400_000));
        assert_eq!(parse_rate("2.5G"), Ok(2_500));
        assert!(parse_rate("100GB").is_err());
        assert_eq!(parse_share("1%"), Ok(0.01));
        assert!(parse_share("2").is_err());
    }

    #[test]
    fn what_is_written_is_read_again() {
        for time in [
            Time::ZERO,
            Time::from_ps(17),
            Time::from_ns(14_090),
            Time::from_ms(2),
            Time::NEVER,
        ] {
            let text = serde_json::to_string(&time).unwrap();
            assert_eq!(serde_json::from_str::<Time>(&text).unwrap(), time, "{text}");
        }
        for p in [0.0, 0.013, 0.5] {
            let text = serde_json::to_string(&Probability::new(p)).unwrap();
            assert_eq!(
                serde_json::from_str::<Probability>(&text).unwrap(),
                Probability::new(p)
            );
        }
    }
}

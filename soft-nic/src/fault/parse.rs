//! Fault plans written as strings.
//!
//! ```text
//! plan      = item *("," item)
//! item      = [direction "."] key "=" value ["@" window]  /  value ["@" window]   ; another value of the key before
//! direction = "in" / "out"                                                        ; without: both
//! window    = time / time "-" time / "-" time                                     ; counted from the start
//! ```
//!
//! Of several values of a key whose windows overlap the last counts: `loss=1%,5%@2s-4s`. (Blackholes add up.)
//!
//! | key | value | example |
//! |---|---|---|
//! | `loss` | share | `loss=1%` |
//! | `burst` | share `:` packets | `burst=1%:8` (bursts of 8 on average, 1 % of all) |
//! | `delay` | time | `delay=50us` |
//! | `jitter` | time | `jitter=20us` (up to; keeps the order of a route) |
//! | `reorder` | share [`:` time] | `reorder=0.1%:200us` (held back, later packets pass; default 100us) |
//! | `duplicate` | share | `duplicate=0.5%` |
//! | `corrupt` | share | `corrupt=0.01%` (one bit flipped) |
//! | `ce` | share | `ce=2%` |
//! | `rate` | rate [`:` bytes [`:` bytes]] | `rate=1gbit:500kB:50kB` (queue, default 1MB; mark above, default never) |
//! | `blackhole` | `path:N` / `port:N` / `plane:N` / `all` | `blackhole=path:3@2s-4s,plane:1@1s` |
//! | `seed` | number | `seed=7` |

use super::plan::{Burst, FaultPlan, Faults, Probability, Queue, Target, Window};
use metaroce_core::time::Duration;
use std::str::FromStr;

/// Why a fault plan could not be read: what, where, and what would do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("fault plan, character {}: `{item}`: {problem}", position + 1)]
pub struct FaultParseError {
    /// The item that could not be read.
    pub item: String,
    /// Where it starts, in bytes.
    pub position: usize,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl FromStr for FaultPlan {
    type Err = FaultParseError;

    fn from_str(text: &str) -> Result<Self, FaultParseError> {
        let mut plan = Self::default();
        let mut key: Option<Key> = None;
        let mut position = 0;
        for item in text.split(',') {
            let error = |problem: String| FaultParseError {
                item: item.to_owned(),
                position,
                problem,
            };
            let trimmed = item.trim();
            if trimmed.is_empty() {
                if text.trim().is_empty() {
                    return Ok(plan);
                }
                return Err(error("empty item; remove the comma".to_owned()));
            }
            let value = match trimmed.split_once('=') {
                Some((name, value)) => {
                    key = Some(Key::parse(name.trim()).map_err(error)?);
                    value.trim()
                }
                None => trimmed,
            };
            let key = key.ok_or_else(|| error("expected KEY=VALUE, such as loss=1%".to_owned()))?;
            key.apply(&mut plan, value).map_err(error)?;
            position += item.len() + 1;
        }
        Ok(plan)
    }
}

#[derive(Clone, Copy)]
struct Key {
    outgoing: bool,
    incoming: bool,
    name: Name,
}

#[derive(Clone, Copy)]
enum Name {
    Loss,
    Burst,
    Delay,
    Jitter,
    Reorder,
    Duplicate,
    Corrupt,
    Ce,
    Rate,
    Blackhole,
    Seed,
}

const NAMES: [(&str, Name); 11] = [
    ("loss", Name::Loss),
    ("burst", Name::Burst),
    ("delay", Name::Delay),
    ("jitter", Name::Jitter),
    ("reorder", Name::Reorder),
    ("duplicate", Name::Duplicate),
    ("corrupt", Name::Corrupt),
    ("ce", Name::Ce),
    ("rate", Name::Rate),
    ("blackhole", Name::Blackhole),
    ("seed", Name::Seed),
];

impl Key {
    fn parse(text: &str) -> Result<Self, String> {
        let (outgoing, incoming, text) = match text.split_once('.') {
            Some(("out", rest)) => (true, false, rest),
            Some(("in", rest)) => (false, true, rest),
            Some((other, _)) => {
                return Err(format!(
                    "unknown direction `{other}`; use in. or out., or neither for both ways"
                ));
            }
            None => (true, true, text),
        };
        let known = NAMES.iter().find(|(name, _)| *name == text);
        match known {
            Some((_, name)) => Ok(Self {
                outgoing,
                incoming,
                name: *name,
            }),
            None => {
                let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
                Err(format!(
                    "unknown fault `{text}`; known: {}",
                    names.join(", ")
                ))
            }
        }
    }

    fn apply(self, plan: &mut FaultPlan, value: &str) -> Result<(), String> {
        if matches!(self.name, Name::Seed) {
            plan.seed = value
                .parse()
                .map_err(|_| "a seed is a whole number below 2^64, such as seed=7".to_owned())?;
            return Ok(());
        }
        let (value, window) = match value.split_once('@') {
            Some((value, window)) => (value, parse_window(window)?),
            None => (value, Window::ALWAYS),
        };
        let mut parsed = Faults::default();
        match self.name {
            Name::Loss => parsed.loss.push(window.holds(share(value)?)),
            Name::Duplicate => parsed.duplicate.push(window.holds(share(value)?)),
            Name::Corrupt => parsed.corrupt.push(window.holds(share(value)?)),
            Name::Ce => parsed.ce.push(window.holds(share(value)?)),
            Name::Delay => parsed.delay.push(window.holds(duration(value)?)),
            Name::Jitter => parsed.jitter.push(window.holds(duration(value)?)),
            Name::Burst => parsed.burst.push(window.holds(burst(value)?)),
            Name::Reorder => {
                let (part, pause) = value.split_once(':').unwrap_or((value, "100us"));
                let fault = (share(part)?, duration(pause)?);
                parsed.reorder.push(window.holds(fault));
            }
            Name::Rate => parsed.queue.push(window.holds(queue(value)?)),
            Name::Blackhole => parsed.blackhole.push(window.holds(target(value)?)),
            Name::Seed => {}
        }
        if self.outgoing {
            extend(&mut plan.outgoing, &parsed);
        }
        if self.incoming {
            extend(&mut plan.incoming, &parsed);
        }
        Ok(())
    }
}

fn extend(faults: &mut Faults, more: &Faults) {
    faults.loss.extend_from_slice(&more.loss);
    faults.burst.extend_from_slice(&more.burst);
    faults.delay.extend_from_slice(&more.delay);
    faults.jitter.extend_from_slice(&more.jitter);
    faults.reorder.extend_from_slice(&more.reorder);
    faults.duplicate.extend_from_slice(&more.duplicate);
    faults.corrupt.extend_from_slice(&more.corrupt);
    faults.ce.extend_from_slice(&more.ce);
    faults.queue.extend_from_slice(&more.queue);
    faults.blackhole.extend_from_slice(&more.blackhole);
}

fn number(text: &str) -> Option<f64> {
    let plain = !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain.then(|| text.parse().ok()).flatten()
}

fn share_of_one(text: &str) -> Result<f64, String> {
    let value = match text.strip_suffix('%') {
        Some(percent) => number(percent.trim()).map(|value| value / 100.0),
        None => number(text),
    };
    value
        .filter(|value| (0.0..=1.0).contains(value))
        .ok_or_else(|| format!("`{text}` is not a share; write 1% or 0.01, from 0 to 100 %"))
}

fn share(text: &str) -> Result<Probability, String> {
    share_of_one(text).map(Probability::from_share)
}

fn burst(text: &str) -> Result<Burst, String> {
    let wrong = || format!("`{text}` is not a burst; write SHARE:PACKETS, such as 1%:8");
    let (rate, length) = text.split_once(':').ok_or_else(wrong)?;
    let length = number(length)
        .filter(|length| *length >= 1.0)
        .ok_or_else(wrong)?;
    Ok(Burst::average(share_of_one(rate)?, length))
}

/// Splits a text into its number and its unit.
fn with_unit(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    number(digits).map(|value| (value, unit))
}

fn duration(text: &str) -> Result<Duration, String> {
    let scaled = with_unit(text).and_then(|(value, unit)| {
        let scale = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return None,
        };
        Some(value * scale)
    });
    match scaled {
        Some(nanos) if nanos < 1e18 => Ok(Duration::from_nanos(nanos as u64)),
        _ => Err(format!(
            "`{text}` is not a time; write a number with ns, us, ms or s, such as 50us"
        )),
    }
}

fn parse_window(text: &str) -> Result<Window, String> {
    let (start, end) = text.split_once('-').unwrap_or((text, ""));
    let start = if start.is_empty() {
        Duration::ZERO
    } else {
        duration(start)?
    };
    let end = if end.is_empty() {
        Window::ALWAYS.end
    } else {
        duration(end)?
    };
    if start >= end {
        return Err(format!(
            "`@{text}` ends before it starts; write @START-END, such as @2s-4s"
        ));
    }
    Ok(Window { start, end })
}

fn bytes(text: &str) -> Result<u64, String> {
    let scaled = with_unit(text).and_then(|(value, unit)| {
        let scale = match unit {
            "" | "B" => 1.0,
            "kB" | "k" => 1e3,
            "KiB" => 1024.0,
            "MB" | "M" => 1e6,
            "MiB" => 1_048_576.0,
            "GB" | "G" => 1e9,
            _ => return None,
        };
        Some(value * scale)
    });
    match scaled {
        Some(value) if value < 1e18 => Ok(value as u64),
        _ => Err(format!(
            "`{text}` is not a size; write a number with B, kB, KiB, MB or MiB, such as 500kB"
        )),
    }
}

fn queue(text: &str) -> Result<Queue, String> {
    let mut parts = text.split(':');
    let rate = parts.next().unwrap_or_default();
    let scaled = with_unit(rate).and_then(|(value, unit)| {
        let scale = match unit {
            "bit" => 1.0,
            "kbit" => 1e3,
            "mbit" | "Mbit" => 1e6,
            "gbit" | "Gbit" => 1e9,
            _ => return None,
        };
        Some(value * scale)
    });
    let Some(rate_bps) = scaled.filter(|rate| (1.0..1e15).contains(rate)) else {
        return Err(format!(
            "`{rate}` is not a rate; write a number with kbit, mbit or gbit, such as 1gbit"
        ));
    };
    let limit_bytes = parts.next().map_or(Ok(1_000_000), bytes)?;
    let mark_bytes = parts.next().map_or(Ok(u64::MAX), bytes)?;
    if parts.next().is_some() {
        return Err(format!(
            "`{text}` has too many parts; write RATE:QUEUE:MARK, such as 1gbit:500kB:50kB"
        ));
    }
    Ok(Queue {
        rate_bps: rate_bps as u64,
        limit_bytes,
        mark_bytes,
        overhead: 66,
    })
}

fn target(text: &str) -> Result<Target, String> {
    let wrong = || format!("`{text}` is no target; write path:N, port:N, plane:N or all");
    if text == "all" {
        return Ok(Target::All);
    }
    let (what, which) = text.split_once(':').ok_or_else(wrong)?;
    match what {
        "path" => which.parse().map(Target::Path).map_err(|_| wrong()),
        "port" => which.parse().map(Target::Port).map_err(|_| wrong()),
        "plane" => which.parse().map(Target::Plane).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Timed;
    use proptest::prelude::*;

    fn window(start_ms: u64, end_ms: u64) -> Window {
        Window {
            start: Duration::from_millis(start_ms),
            end: Duration::from_millis(end_ms),
        }
    }

    #[test]
    fn a_plan_is_read_with_windows_directions_and_repeated_values() {
        let text = "loss=1%,delay=50us,out.ce=0.5,blackhole=path:3@2s-4s,plane:1@1s,seed=9,in.rate=1gbit:500kB:50kB";
        let plan: FaultPlan = text.parse().unwrap();
        assert_eq!(plan.seed, 9);
        for faults in [&plan.outgoing, &plan.incoming] {
            assert!((faults.loss[0].fault.share() - 0.01).abs() < 1e-12);
            assert_eq!(faults.delay, [Timed::always(Duration::from_micros(50))]);
            assert_eq!(
                faults.blackhole[0],
                Timed {
                    fault: Target::Path(3),
                    window: window(2_000, 4_000)
                }
            );
            assert_eq!(faults.blackhole[1].fault, Target::Plane(1));
            assert_eq!(
                faults.blackhole[1].window.start,
                Duration::from_millis(1_000)
            );
        }
        assert_eq!(plan.outgoing.ce.len(), 1);
        assert!(plan.incoming.ce.is_empty() && plan.outgoing.queue.is_empty());
        let link = plan.incoming.queue[0].fault;
        assert_eq!(
            (link.rate_bps, link.limit_bytes, link.mark_bytes),
            (1_000_000_000, 500_000, 50_000)
        );
    }

    #[test]
    fn an_error_says_what_and_where() {
        let error = |text: &str| text.parse::<FaultPlan>().unwrap_err().to_string();
        assert_eq!(
            error("loss=1%,delay=50"),
            "fault plan, character 9: `delay=50`: `50` is not a time; write a number with ns, us, ms or s, such as 50us"
        );
        assert!(error("los=1%").contains("unknown fault `los`; known: loss, burst"));
        assert!(error("loss=101%").contains("not a share"));
        assert!(error("1%").contains("expected KEY=VALUE"));
        assert!(error("loss=1%,,ce=1%").contains("empty item"));
        assert!(error("up.loss=1%").contains("unknown direction `up`"));
        assert!(error("blackhole=path:300").contains("no target"));
        assert!(error("loss=1%@4s-2s").contains("ends before it starts"));
        assert!(error("seed=-1").contains("whole number"));
        assert!(error("rate=1gbit:1kB:1kB:1").contains("too many parts"));
    }

    #[test]
    fn nothing_is_a_plan_without_faults() {
        assert!("".parse::<FaultPlan>().unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[a-z0-9.,:=@%µ-]{0,60}") {
            let _ = text.parse::<FaultPlan>();
        }

        #[test]
        fn shares_survive_the_trip(percent in 0.0f64..100.0) {
            let plan: FaultPlan = format!("loss={percent:.6}%").parse().unwrap();
            prop_assert!((plan.outgoing.loss[0].fault.share() * 100.0 - percent).abs() < 1e-5);
        }
    }
}

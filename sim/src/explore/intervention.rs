//! What somebody does to a run, and when: as text, so that a run can be told in an address.

use std::fmt;
use std::str::FromStr;

use crate::time::Time;

/// A place in a run: the state after so many events, with the clock at a time. Both count: events of one time are told apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Position {
    /// Since the workload began.
    pub elapsed: Time,
    /// Of the network, since it was built. In an intervention 0 means: all that are due by then.
    pub events: u64,
}

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A link goes down, both ways.
    Cut {
        /// By its number in the fabric.
        link: u32,
    },
    /// It is up, as fast as it was, and loses nothing that the scenario does not lose.
    Repair {
        /// By its number in the fabric.
        link: u32,
    },
    /// It is slow, both ways.
    Slow {
        /// By its number in the fabric.
        link: u32,
        /// Its rate, Mbit/s, at least 1.
        mbps: u32,
    },
    /// It loses packets, both ways, instead of what else went wrong on it.
    Lose {
        /// By its number in the fabric.
        link: u32,
        /// Of a thousand packets.
        permille: u32,
    },
    /// A packet is lost, wherever it is.
    Drop {
        /// By its number in the slab.
        packet: u32,
    },
}

impl Action {
    /// The link that it is done to, by its number in the fabric.
    #[must_use]
    pub const fn link(self) -> Option<u32> {
        match self {
            Self::Cut { link }
            | Self::Repair { link }
            | Self::Slow { link, .. }
            | Self::Lose { link, .. } => Some(link),
            Self::Drop { .. } => None,
        }
    }
}

/// An action and where in the run it is done. As text: `PICOSECONDS-EVENTS-VERB-NUMBER[-NUMBER]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Intervention {
    /// Where.
    pub at: Position,
    /// What.
    pub action: Action,
}

impl fmt::Display for Intervention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-", self.at.elapsed.ps(), self.at.events)?;
        match self.action {
            Action::Cut { link } => write!(f, "cut-{link}"),
            Action::Repair { link } => write!(f, "repair-{link}"),
            Action::Slow { link, mbps } => write!(f, "slow-{link}-{mbps}"),
            Action::Lose { link, permille } => write!(f, "lose-{link}-{permille}"),
            Action::Drop { packet } => write!(f, "drop-{packet}"),
        }
    }
}

impl FromStr for Intervention {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not PICOSECONDS-EVENTS-VERB-NUMBER");
        let words: Vec<&str> = text.split('-').collect();
        let number = |word: &str| word.parse::<u32>().map_err(|_| wrong());
        let [ps, events, verb, numbers @ ..] = &words[..] else {
            return Err(wrong());
        };
        let action = match (*verb, numbers) {
            ("cut", [link]) => Action::Cut {
                link: number(link)?,
            },
            ("repair", [link]) => Action::Repair {
                link: number(link)?,
            },
            ("slow", [link, mbps]) => Action::Slow {
                link: number(link)?,
                mbps: number(mbps)?,
            },
            ("lose", [link, permille]) => Action::Lose {
                link: number(link)?,
                permille: number(permille)?,
            },
            ("drop", [packet]) => Action::Drop {
                packet: number(packet)?,
            },
            _ => return Err(wrong()),
        };
        let at = Position {
            elapsed: Time::from_ps(ps.parse().map_err(|_| wrong())?),
            events: events.parse().map_err(|_| wrong())?,
        };
        Ok(Self { at, action })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_back() {
        let at = Position {
            elapsed: Time::from_ps(1_234_567),
            events: 89,
        };
        for action in [
            Action::Cut { link: 3 },
            Action::Repair { link: 0 },
            Action::Slow {
                link: 1,
                mbps: 25_000,
            },
            Action::Lose {
                link: 7,
                permille: 50,
            },
            Action::Drop { packet: 12 },
        ] {
            let intervention = Intervention { at, action };
            assert_eq!(intervention.to_string().parse(), Ok(intervention));
        }
        for wrong in [
            "",
            "1-2",
            "1-2-cut",
            "1-2-cut-x",
            "1-2-slow-3",
            "a-2-cut-3",
            "1-2-mend-3",
        ] {
            assert!(wrong.parse::<Intervention>().is_err(), "{wrong}");
        }
    }
}

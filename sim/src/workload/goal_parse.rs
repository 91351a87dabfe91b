//! Reads GOAL traces: for each rank its operations and what they wait for.
//!
//! GOAL ("group operation assembly language") is from T. Hoefler, C. Siebert and A. Lumsdaine, ICPP 2009; the text is what LogGOPSim's
//! `txt2bin` takes (T. Hoefler, T. Schneider and A. Lumsdaine, "LogGOPSim", HPDC 2010). An operation ends at the end of its line or with `;`.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: calc 100 cpu 0          // nanoseconds
//!   l2: send 10b to 1 tag 5
//!   l2 requires l1
//! }
//! rank 1 { recv 10b from 0 tag 5 }
//! ```

use std::collections::BTreeMap;

use super::text::{ParseError, Problem, Word};

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GoalAction {
    /// Computes for so many nanoseconds.
    Calc(u64),
    /// Sends so many bytes.
    Send {
        /// How many.
        bytes: u64,
        /// To which rank.
        to: u32,
        /// What the receiver looks for.
        tag: u32,
    },
    /// Receives at most so many bytes.
    Receive {
        /// How many.
        bytes: u64,
        /// From which rank.
        from: u32,
        /// What the sender has put on it.
        tag: u32,
    },
}

/// An operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Whose it is.
    pub rank: u32,
    /// Its name in its rank, if it has one.
    pub label: Option<String>,
    /// Where it was read.
    pub line: u32,
    /// What it does.
    pub action: GoalAction,
    /// It starts after these have ended; indices of operations.
    pub requires: Vec<usize>,
    /// It starts after these have started.
    pub starts_after: Vec<usize>,
}

/// A trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Goal {
    /// How many ranks there are.
    pub ranks: u32,
    /// All operations, in the order of the file.
    pub operations: Vec<Operation>,
}

/// Words and signs; the end of a line or a `;` is an empty word.
struct Tokens<'a> {
    words: Vec<Word<'a>>,
    next: usize,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a str) -> Result<Self, ParseError> {
        let mut words = Vec::new();
        let mut comment: Option<Word<'a>> = None;
        for (line, text) in (1..).zip(text.lines()) {
            let mut at = 0;
            while at < text.len() {
                let rest = &text[at..];
                let column = text[..at].chars().count() as u32 + 1;
                let word = |length: usize| Word {
                    text: &rest[..length],
                    line,
                    column,
                };
                if comment.is_some() {
                    at = match rest.find("*/") {
                        Some(end) => {
                            comment = None;
                            at + end + 2
                        }
                        None => text.len(),
                    };
                    continue;
                }
                let run = |of: fn(char) -> bool| rest.find(|c| !of(c)).unwrap_or(rest.len());
                let first = rest.chars().next().unwrap_or(' ');
                at += match first {
                    _ if rest.starts_with("//") => rest.len(),
                    _ if rest.starts_with("/*") => {
                        comment = Some(word(2));
                        2
                    }
                    ';' => {
                        words.push(word(0));
                        1
                    }
                    '0'..='9' => {
                        words.push(word(run(|c| c.is_ascii_digit())));
                        run(|c| c.is_ascii_digit())
                    }
                    '-' => {
                        let length = 1 + rest[1..]
                            .find(|c: char| !c.is_ascii_digit())
                            .unwrap_or(rest.len() - 1);
                        words.push(word(length));
                        length
                    }
                    _ if first.is_ascii_alphabetic() || first == '_' => {
                        let length = run(|c| c.is_ascii_alphanumeric() || c == '_');
                        words.push(word(length));
                        length
                    }
                    ':' | '{' | '}' => {
                        words.push(word(1));
                        1
                    }
                    _ if first.is_whitespace() => first.len_utf8(),
                    _ => {
                        let word = word(first.len_utf8());
                        return Err(word.error(Problem::Unknown(word.text.to_string())));
                    }
                };
            }
            words.push(Word {
                text: "",
                line,
                column: text.chars().count() as u32 + 1,
            });
        }
        match comment {
            Some(start) => Err(start.error(Problem::Missing("`*/`"))),
            None => Ok(Self { words, next: 0 }),
        }
    }

    /// The next word; `None` at the end of the file.
    fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.next).copied()
    }

    fn take(&mut self) -> Word<'a> {
        let word = self.peek().or(self.words.last().copied());
        self.next += 1;
        word.unwrap_or(Word {
            text: "",
            line: 1,
            column: 1,
        })
    }

    fn skip_ends(&mut self) {
        while self.peek().is_some_and(|word| word.text.is_empty()) {
            self.next += 1;
        }
    }

    fn expect(&mut self, text: &str, expected: &'static str) -> Result<Word<'a>, ParseError> {
        let word = self.take();
        if word.text == text {
            return Ok(word);
        }
        Err(word.expected(expected))
    }
}

impl Goal {
    /// Reads a file.
    ///
    /// # Errors
    /// If it does not keep to the format. Receives from any source or with any tag (-1) are refused: which message one takes
    /// is known only in a run.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut tokens = Tokens::new(text)?;
        let mut goal = Self::default();
        tokens.skip_ends();
        tokens.expect("num_ranks", "`num_ranks`")?;
        goal.ranks = tokens.take().number()?;
        let mut seen = BTreeMap::new();
        loop {
            tokens.skip_ends();
            if tokens.peek().is_none() {
                return Ok(goal);
            }
            tokens.expect("rank", "`rank`")?;
            let word = tokens.take();
            let rank = goal.rank(&word)?;
            if seen.insert(rank, ()).is_some() {
                return Err(word.error(Problem::Twice(format!("rank {rank}"))));
            }
            tokens.skip_ends();
            tokens.expect("{", "`{`")?;
            goal.block(rank, &mut tokens)?;
        }
    }

    fn rank(&self, word: &Word<'_>) -> Result<u32, ParseError> {
        let rank = word.number()?;
        if rank < self.ranks {
            return Ok(rank);
        }
        let name = word.text.to_string();
        Err(word.error(Problem::NoSuch { what: "rank", name }))
    }

    /// The operations of a rank, up to the closing brace.
    fn block<'a>(&mut self, rank: u32, tokens: &mut Tokens<'a>) -> Result<(), ParseError> {
        let mut labels: BTreeMap<&'a str, usize> = BTreeMap::new();
        // References may be to operations that come later.
        let mut references = Vec::new();
        loop {
            tokens.skip_ends();
            let first = tokens.take();
            match first.text {
                "}" => break,
                "send" | "recv" | "calc" => self.operation(rank, None, &first, tokens)?,
                text if text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
                    let next = tokens.take();
                    match next.text {
                        ":" => {
                            if labels.insert(text, self.operations.len()).is_some() {
                                return Err(first.error(Problem::Twice(text.to_string())));
                            }
                            let verb = tokens.take();
                            self.operation(rank, Some(text), &verb, tokens)?;
                        }
                        "requires" | "irequires" => {
                            let on = tokens.take();
                            if on.text.is_empty() {
                                return Err(on.expected("a label"));
                            }
                            references.push((first, next.text == "requires", on));
                            end(tokens)?;
                        }
                        _ => return Err(next.expected("`:`, `requires` or `irequires`")),
                    }
                }
                _ => return Err(first.expected("an operation, a label or `}`")),
            }
        }
        for (label, ended, on) in references {
            let find = |word: Word<'a>| {
                labels.get(word.text).copied().ok_or_else(|| {
                    let name = word.text.to_string();
                    word.error(Problem::NoSuch {
                        what: "label",
                        name,
                    })
                })
            };
            let (waits, on) = (find(label)?, find(on)?);
            let operation = &mut self.operations[waits];
            if ended {
                operation.requires.push(on);
            } else {
                operation.starts_after.push(on);
            }
        }
        Ok(())
    }

    fn operation(
        &mut self,
        rank: u32,
        label: Option<&str>,
        verb: &Word<'_>,
        tokens: &mut Tokens<'_>,
    ) -> Result<(), ParseError> {
        let amount = tokens.take();
        let mut tag = 0;
        let action = match verb.text {
            "calc" => GoalAction::Calc(amount.number()?),
            "send" | "recv" => {
                let bytes = amount.number()?;
                tokens.expect("b", "`b`")?;
                let sends = verb.text == "send";
                let (way, expected) = if sends {
                    ("to", "`to`")
                } else {
                    ("from", "`from`")
                };
                tokens.expect(way, expected)?;
                let peer = self.rank(&tokens.take())?;
                if tokens.peek().is_some_and(|word| word.text == "tag") {
                    tokens.next += 1;
                    tag = tokens.take().number()?;
                }
                if sends {
                    GoalAction::Send {
                        bytes,
                        to: peer,
                        tag,
                    }
                } else {
                    GoalAction::Receive {
                        bytes,
                        from: peer,
                        tag,
                    }
                }
            }
            _ => return Err(verb.expected("`send`, `recv` or `calc`")),
        };
        // Which processor or adapter of the rank it is: here, hosts have one of each.
        while tokens
            .peek()
            .is_some_and(|word| matches!(word.text, "cpu" | "nic"))
        {
            tokens.next += 1;
            tokens.take().number::<u8>()?;
        }
        end(tokens)?;
        self.operations.push(Operation {
            rank,
            label: label.map(String::from),
            line: verb.line,
            action,
            requires: Vec::new(),
            starts_after: Vec::new(),
        });
        Ok(())
    }
}

/// Sees that an operation ends here.
fn end(tokens: &mut Tokens<'_>) -> Result<(), ParseError> {
    match tokens.peek() {
        None => Ok(()),
        Some(word) if matches!(word.text, "" | "}") => Ok(()),
        Some(word) => Err(word.expected("the end of the operation")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_the_format_has() {
        let text = "/* two\n ranks */ num_ranks 2\n\nrank 1 { recv 10 b from 0 cpu 1 nic 2 }\n\
            rank 0 // first\n{\r\n  b irequires a; a: calc 7 cpu 3\n b: send 10b to 1 tag 5\n c: recv 0b from 1; c requires b\n}";
        let goal = Goal::parse(text).unwrap();
        assert_eq!((goal.ranks, goal.operations.len()), (2, 4));
        assert_eq!(
            goal.operations[0].action,
            GoalAction::Receive {
                bytes: 10,
                from: 0,
                tag: 0
            }
        );
        assert_eq!(goal.operations[1].action, GoalAction::Calc(7));
        assert_eq!(
            goal.operations[2],
            Operation {
                rank: 0,
                label: Some(String::from("b")),
                line: 8,
                action: GoalAction::Send {
                    bytes: 10,
                    to: 1,
                    tag: 5
                },
                requires: vec![],
                starts_after: vec![1],
            }
        );
        assert_eq!(goal.operations[3].requires, [2]);
    }

    #[test]
    fn errors_name_the_place() {
        for (text, message) in [
            (
                "rank 0 {}",
                "line 1, column 1: `num_ranks` expected, not `rank`",
            ),
            (
                "num_ranks 2\nrank 2 {}",
                "line 2, column 6: there is no rank `2`",
            ),
            (
                "num_ranks 2\nrank 0 {\n}\nrank 0 {",
                "line 4, column 6: `rank 0` is there twice",
            ),
            (
                "num_ranks 2\nrank 0 {\nl1: sned 10b to 1",
                "line 3, column 5: `send`, `recv` or `calc` expected, not `sned`",
            ),
            (
                "num_ranks 2\nrank 0 {\nsend 10 to 1",
                "line 3, column 9: `b` expected, not `to`",
            ),
            (
                "num_ranks 2\nrank 0 {\nsend 10b from 1",
                "line 3, column 10: `to` expected, not `from`",
            ),
            (
                "num_ranks 2\nrank 0 {\nrecv 10b from -1 tag 0",
                "line 3, column 15: a number expected, not `-1`",
            ),
            (
                "num_ranks 2\nrank 0 {\nsend 10b to 1 tag 0 cup 1",
                "line 3, column 21: the end of the operation expected, not `cup`",
            ),
            (
                "num_ranks 2\nrank 0 {\na: calc 1\na: calc 2\n}",
                "line 4, column 1: `a` is there twice",
            ),
            (
                "num_ranks 2\nrank 0 {\na: calc 1\na requires b\n}",
                "line 4, column 12: there is no label `b`",
            ),
            (
                "num_ranks 2\nrank 0 {\ncalc 1\n",
                "line 3, column 7: an operation, a label or `}` expected, not the end of the line",
            ),
            (
                "num_ranks 2\nrank 0 {\ncalc 1 $\n}",
                "line 3, column 8: `$` is not known here",
            ),
            ("num_ranks 2 /* never", "line 1, column 13: `*/` is missing"),
            (
                "num_ranks 99999999999",
                "line 1, column 11: `99999999999` is out of range",
            ),
        ] {
            assert_eq!(
                Goal::parse(text).unwrap_err().to_string(),
                message,
                "{text}"
            );
        }
        assert!(Goal::parse("").is_err());
    }
}

//! Text files of other simulators: words with their places, and errors that name them.

use core::str::FromStr;

/// What is wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct ParseError {
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1, in characters.
    pub column: u32,
    /// What is wrong.
    pub problem: Problem,
}

/// What can be wrong with a file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    /// A word that means nothing here.
    #[error("`{0}` is not known here")]
    Unknown(String),
    /// Something else should be here.
    #[error("{expected} expected, not {found}")]
    Expected {
        /// What.
        expected: &'static str,
        /// What is here.
        found: String,
    },
    /// A number that is not within its limits.
    #[error("`{0}` is out of range")]
    Range(String),
    /// Something that must be there is not.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// Something was said before.
    #[error("`{0}` is there twice")]
    Twice(String),
    /// A number of things that are not as many.
    #[error("{said} {what} announced, {found} found")]
    Count {
        /// Which things.
        what: &'static str,
        /// How many there should be.
        said: u64,
        /// How many there are.
        found: u64,
    },
    /// A reference to something that is not there.
    #[error("there is no {what} `{name}`")]
    NoSuch {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// Things that do not fit each other.
    #[error("{0}")]
    Mismatch(String),
    /// Things that wait for each other in a circle.
    #[error("these wait for each other: {0}")]
    Cycle(String),
}

/// A word and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word<'a> {
    /// The word; empty at the end of a line.
    pub text: &'a str,
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1.
    pub column: u32,
}

impl Word<'_> {
    /// An error at this word.
    #[must_use]
    pub fn error(&self, problem: Problem) -> ParseError {
        ParseError {
            line: self.line,
            column: self.column,
            problem,
        }
    }

    /// An error that says what should have been here.
    #[must_use]
    pub fn expected(&self, expected: &'static str) -> ParseError {
        let found = if self.text.is_empty() {
            String::from("the end of the line")
        } else {
            format!("`{}`", self.text)
        };
        self.error(Problem::Expected { expected, found })
    }

    /// The word as a number that fits its type.
    ///
    /// # Errors
    /// If it is none.
    pub fn number<T: FromStr>(&self) -> Result<T, ParseError> {
        if self.text.is_empty() || !self.text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.expected("a number"));
        }
        let range = || self.error(Problem::Range(self.text.to_string()));
        self.text.parse().map_err(|_| range())
    }
}

/// A line that is not empty and no comment (`#`), as words between blanks.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    words: Vec<Word<'a>>,
    next: usize,
    end: Word<'a>,
}

impl<'a> Line<'a> {
    /// Takes the next word; at the end, an empty one.
    pub fn take(&mut self) -> Word<'a> {
        let word = self.peek();
        self.next += 1;
        word
    }

    /// The next word; at the end, an empty one.
    #[must_use]
    pub fn peek(&self) -> Word<'a> {
        self.words.get(self.next).copied().unwrap_or(self.end)
    }

    /// Sees that there is nothing left.
    ///
    /// # Errors
    /// If there is.
    pub fn finish(&self) -> Result<(), ParseError> {
        let word = self.peek();
        if word.text.is_empty() {
            return Ok(());
        }
        Err(word.error(Problem::Unknown(word.text.to_string())))
    }
}

/// The lines of a text.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    (1..).zip(text.lines()).filter_map(|(line, text)| {
        let column = |at: usize| text[..at].chars().count() as u32 + 1;
        let mut words = Vec::new();
        let mut rest = 0;
        while let Some(skip) = text[rest..].find(|c: char| !c.is_whitespace()) {
            let start = rest + skip;
            let length = text[start..].find(char::is_whitespace);
            rest = length.map_or(text.len(), |length| start + length);
            words.push(Word {
                text: &text[start..rest],
                line,
                column: column(start),
            });
        }
        let end = Word {
            text: "",
            line,
            column: column(text.len()),
        };
        let empty = words.first().is_none_or(|word| word.text.starts_with('#'));
        (!empty).then_some(Line {
            words,
            next: 0,
            end,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_know_their_places() {
        let mut all = lines("\n# no\n  ab  3x 18446744073709551616\r\nü 7\n");
        let mut line = all.next().unwrap();
        assert_eq!(
            line.take(),
            Word {
                text: "ab",
                line: 3,
                column: 3
            }
        );
        assert_eq!(
            line.peek().number::<u8>().unwrap_err().to_string(),
            "line 3, column 7: a number expected, not `3x`"
        );
        line.take();
        assert_eq!(
            line.finish().unwrap_err().problem,
            Problem::Unknown("18446744073709551616".into())
        );
        assert!(matches!(
            line.take().number::<u64>().unwrap_err().problem,
            Problem::Range(_)
        ));
        assert_eq!(line.finish(), Ok(()));
        let mut line = all.next().unwrap();
        line.take();
        assert_eq!(line.peek().column, 3);
        assert_eq!(line.take().number(), Ok(7_u32));
        assert_eq!(
            line.take().number::<u8>().unwrap_err().to_string(),
            "line 4, column 4: a number expected, not the end of the line"
        );
        assert!(all.next().is_none());
    }
}

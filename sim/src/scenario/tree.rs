//! A scenario file as a tree whose every part knows where it was written.

use core::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Problem;

/// Where in the text: bytes.
pub(super) type Span = Range<usize>;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub span: Span,
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    None,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Table(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub key: String,
    pub span: Span,
    pub tree: Tree,
}

impl Value {
    /// What it is, for errors.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl Tree {
    /// Reads a file.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let table = DeTable::parse(text).map_err(|error| Problem {
            span: error.span().unwrap_or(0..0),
            key: String::new(),
            message: error.message().to_owned(),
        })?;
        let span = table.span();
        Self::from_table(table.into_inner(), span)
    }

    fn from_table(table: DeTable<'_>, span: Span) -> Result<Self, Problem> {
        let entry = |(key, value): (Spanned<_>, Spanned<DeValue<'_>>)| {
            let span = key.span();
            let key: std::borrow::Cow<'_, str> = key.into_inner();
            Ok(Entry {
                key: key.into_owned(),
                span,
                tree: Self::from_value(value)?,
            })
        };
        let entries = table.into_iter().map(entry).collect::<Result<_, _>>()?;
        Ok(Self {
            span,
            value: Value::Table(entries),
        })
    }

    fn from_value(value: Spanned<DeValue<'_>>) -> Result<Self, Problem> {
        let span = value.span();
        let wrong = |message: String| Problem {
            span: span.clone(),
            key: String::new(),
            message,
        };
        let value = match value.into_inner() {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Boolean(value) => Value::Bool(value),
            DeValue::Integer(integer) => {
                let digits = integer.as_str().replace('_', "");
                let parsed = i128::from_str_radix(&digits, integer.radix());
                Value::Integer(parsed.map_err(|error| wrong(error.to_string()))?)
            }
            DeValue::Float(float) => {
                let parsed = float.as_str().replace('_', "").parse();
                Value::Float(parsed.map_err(|_| wrong("not a number".to_owned()))?)
            }
            DeValue::Datetime(date) => {
                return Err(wrong(format!("{date}: no key takes a date")));
            }
            DeValue::Array(items) => Value::List(
                items
                    .into_iter()
                    .map(Self::from_value)
                    .collect::<Result<_, _>>()?,
            ),
            DeValue::Table(table) => return Self::from_table(table, span),
        };
        Ok(Self { span, value })
    }

    /// A tree of what was computed; all of it stands at `span`.
    pub fn computed(value: &serde_json::Value, span: &Span) -> Self {
        use serde_json::Value as Json;
        let value = match value {
            Json::Null => Value::None,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(integer), _) => Value::Integer(integer.into()),
                (_, Some(integer)) => Value::Integer(integer.into()),
                _ => Value::Float(number.as_f64().unwrap_or(0.0)),
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(items) => Value::List(
                items
                    .iter()
                    .map(|item| Self::computed(item, span))
                    .collect(),
            ),
            Json::Object(map) => Value::Table(
                map.iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        span: span.clone(),
                        tree: Self::computed(value, span),
                    })
                    .collect(),
            ),
        };
        Self {
            span: span.clone(),
            value,
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(entries) => entries
                .iter()
                .find(|entry| entry.key == key)
                .map(|entry| &entry.tree),
            Value::List(items) => items.get(key.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// The value of a key, to be changed; an empty table if there is none.
    pub fn entry(&mut self, key: &str) -> Option<&mut Self> {
        let span = self.span.clone();
        match &mut self.value {
            Value::List(items) => items.get_mut(key.parse::<usize>().ok()?),
            Value::Table(entries) => {
                let index = entries
                    .iter()
                    .position(|entry| entry.key == key)
                    .unwrap_or_else(|| {
                        entries.push(Entry {
                            key: key.to_owned(),
                            span: span.clone(),
                            tree: Self {
                                span,
                                value: Value::Table(Vec::new()),
                            },
                        });
                        entries.len() - 1
                    });
                Some(&mut entries[index].tree)
            }
            _ => None,
        }
    }

    /// The kind of a table that has one.
    pub fn kind(&self) -> Option<&str> {
        match &self.get("kind")?.value {
            Value::Text(kind) => Some(kind),
            _ => None,
        }
    }

    /// Takes from `other` what is not here. Tables of one key within it are choices, and not mixed with other choices.
    pub fn fill(&mut self, other: &Self) {
        let (Value::Table(here), Value::Table(there)) = (&mut self.value, &other.value) else {
            return;
        };
        for entry in there {
            match here.iter_mut().find(|own| own.key == entry.key) {
                Some(own) if entry.tree.is_other_choice(&own.tree) => {}
                Some(own) => own.tree.fill(&entry.tree),
                None => here.push(entry.clone()),
            }
        }
    }

    fn is_other_choice(&self, than: &Self) -> bool {
        match (&self.value, &than.value) {
            (Value::Table(this), Value::Table(that)) => {
                this.len() == 1 && that.iter().all(|entry| entry.key != this[0].key)
            }
            _ => false,
        }
    }

    /// Puts a value at a path such as `fabric.tiers.core.mbps` or `fault.0.until`. Another `kind` takes the place of all that the
    /// table had.
    pub fn set(&mut self, path: &str, value: Self) -> Result<(), String> {
        let keys: Vec<&str> = path.split('.').collect();
        let Some((last, parents)) = keys.split_last() else {
            return Err("there is no key".to_owned());
        };
        let mut at = self;
        let mut so_far = String::new();
        for key in parents {
            if !so_far.is_empty() {
                so_far.push('.');
            }
            so_far.push_str(key);
            // A text that stands for a table with only a kind may be made one.
            at = match at.entry(key) {
                Some(next) => next,
                None => return Err(format!("`{so_far}` is not there")),
            };
            if let Value::Text(kind) = &at.value {
                let kind = Self {
                    span: at.span.clone(),
                    value: Value::Text(kind.clone()),
                };
                at.value = Value::Table(vec![Entry {
                    key: "kind".to_owned(),
                    span: at.span.clone(),
                    tree: kind,
                }]);
            }
        }
        let new_kind = match (*last, &value.value) {
            ("kind", Value::Text(kind)) => at.kind() != Some(kind),
            _ => false,
        };
        if new_kind && let Value::Table(entries) = &mut at.value {
            entries.clear();
        }
        let span = value.span.clone();
        match at.entry(last) {
            Some(place) => {
                *place = value;
                if let Value::Table(entries) = &mut at.value
                    && let Some(entry) = entries.iter_mut().find(|entry| entry.key == *last)
                {
                    entry.span = span;
                }
                Ok(())
            }
            None => Err(format!(
                "`{}` is {}, not a table",
                parents.join("."),
                at.value.name()
            )),
        }
    }
}

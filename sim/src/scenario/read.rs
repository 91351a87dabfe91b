//! Reads structs from a [`Tree`], with errors that know where they are.
//!
//! Three things are read as people write them. Numbers whose keys end in `bytes`, `_ns`, `mbps` or `_percent` may be texts with a
//! unit. A choice is a text, or a table with a `kind` and the settings of that kind. `"none"` is no value where there may be none.

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};

use super::error::Problem;
use super::tree::{Entry, Span, Tree, Value};
use crate::units;

impl core::fmt::Display for Problem {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for Problem {}

/// No place yet.
const NOWHERE: Span = usize::MAX..usize::MAX;

impl de::Error for Problem {
    fn custom<T: core::fmt::Display>(message: T) -> Self {
        Self {
            span: NOWHERE,
            key: String::new(),
            message: message.to_string(),
        }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        de::Error::custom(format!(
            "there is no key `{field}` here: {}",
            list(expected)
        ))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        de::Error::custom(format!("`{variant}` is no choice here: {}", list(expected)))
    }

    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let found = match found {
            de::Unexpected::Bool(value) => format!("`{value}`"),
            de::Unexpected::Unsigned(value) => format!("`{value}`"),
            de::Unexpected::Signed(value) => format!("`{value}`"),
            de::Unexpected::Float(value) => format!("`{value}`"),
            de::Unexpected::Str(text) => format!("`{text}`"),
            de::Unexpected::Seq => "a list".to_owned(),
            de::Unexpected::Map => "a table".to_owned(),
            other => other.to_string(),
        };
        let expected = match expected.to_string().as_str() {
            "a sequence" => "a list ([[...]] for tables)".to_owned(),
            "a string" => "text in quotes".to_owned(),
            other if other.starts_with("struct ") => "a table".to_owned(),
            other => other.to_owned(),
        };
        de::Error::custom(format!("{found}, where {expected} is expected"))
    }

    fn missing_field(field: &'static str) -> Self {
        de::Error::custom(format!("`{field}` is missing"))
    }
}

/// What would do.
fn list(expected: &[&str]) -> String {
    match expected {
        [] => "nothing is expected".to_owned(),
        [one] => format!("only `{one}` is"),
        all => format!("there are `{}`", all.join("`, `")),
    }
}

impl Problem {
    /// At this place, if it has none yet.
    fn at(mut self, span: &Span) -> Self {
        if self.span == NOWHERE {
            self.span = span.clone();
        }
        self
    }

    /// Within the table of this key.
    pub(super) fn within(mut self, key: &str) -> Self {
        if !self.key.is_empty() {
            self.key.insert(0, '.');
        }
        self.key.insert_str(0, key);
        self
    }
}

/// Reads the text of a number.
type Unit = fn(&str) -> Result<u64, String>;

/// How the text of a number is read, by the end of its key.
fn unit_of(key: &str) -> Option<Unit> {
    let ends = |end: &str| key.ends_with(end);
    if key == "bytes" || ends("_bytes") {
        Some(units::parse_size)
    } else if ends("_ns") {
        Some(|text| {
            let time = units::parse_time(text)?;
            if time.ps() % 1_000 == 0 {
                Ok(time.ns())
            } else {
                Err(format!("`{text}` is not a whole number of nanoseconds"))
            }
        })
    } else if key == "mbps" || ends("_mbps") {
        Some(units::parse_rate)
    } else if ends("_percent") {
        Some(|text| {
            let percent = text.strip_suffix('%').unwrap_or(text).trim();
            percent
                .parse()
                .map_err(|_| format!("`{text}` is not a whole number of percent"))
        })
    } else {
        None
    }
}

/// A tree to be read, and the key it stands at.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    tree: &'a Tree,
    key: &'a str,
}

impl<'a> Reader<'a> {
    pub fn new(tree: &'a Tree) -> Self {
        Self { tree, key: "" }
    }

    /// An integer of a type with these bounds.
    fn integer<'de, V: Visitor<'de>>(
        self,
        visitor: V,
        low: i128,
        high: i128,
    ) -> Result<V::Value, Problem> {
        let wrong = |message: String| <Problem as de::Error>::custom(message).at(&self.tree.span);
        let value = match &self.tree.value {
            Value::Integer(integer) => *integer,
            Value::Text(text) => match unit_of(self.key) {
                Some(parse) => i128::from(parse(text).map_err(wrong)?),
                None => return Err(wrong("text, where an integer is expected".to_owned())),
            },
            other => {
                return Err(wrong(format!(
                    "{}, where an integer is expected",
                    other.name()
                )));
            }
        };
        if !(low..=high).contains(&value) {
            let bounds = match high {
                _ if high >= i128::from(i64::MAX) => format!("an integer from {low} on"),
                _ => format!("an integer from {low} to {high}"),
            };
            return Err(wrong(format!("{value} does not do: {bounds} is expected")));
        }
        match u64::try_from(value) {
            Ok(value) => visitor.visit_u64(value),
            Err(_) => visitor.visit_i64(value as i64),
        }
    }
}

/// Deserializes integers within the bounds of their types.
macro_rules! integers {
    ($($method:ident: $type:ty),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            self.integer(visitor, <$type>::MIN.into(), <$type>::MAX.into())
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        let tree = self.tree;
        match &tree.value {
            Value::None => visitor.visit_none(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(_) => self.integer(visitor, i64::MIN.into(), u64::MAX.into()),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_str(text),
            Value::List(items) => {
                let mut list = List {
                    items: items.iter().enumerate(),
                    key: self.key,
                };
                visitor.visit_seq(&mut list)
            }
            Value::Table(entries) => visitor.visit_map(Table {
                entries: entries.iter().collect(),
                next: 0,
            }),
        }
        .map_err(|error: Problem| error.at(&tree.span))
    }

    integers! {
        deserialize_u8: u8, deserialize_u16: u16, deserialize_u32: u32, deserialize_u64: u64,
        deserialize_i8: i8, deserialize_i16: i16, deserialize_i32: i32, deserialize_i64: i64
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match (&self.tree.value, self.key.is_empty()) {
            (Value::Integer(value), _) => visitor.visit_f64(*value as f64),
            (Value::Text(text), false) if text.ends_with('%') => {
                let share = units::parse_share(text).map_err(de::Error::custom);
                share.and_then(|share| visitor.visit_f64(share))
            }
            _ => return self.deserialize_any(visitor),
        }
        .map_err(|error: Problem| error.at(&self.tree.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match &self.tree.value {
            Value::None => visitor.visit_none(),
            Value::Text(text) if text == "none" => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        let tree = self.tree;
        let chosen = match &tree.value {
            Value::Text(text) => Choice {
                name: text,
                span: &tree.span,
                content: Content::Nothing,
            },
            Value::Table(entries) => match (entries.iter().find(|e| e.key == "kind"), &entries[..])
            {
                (Some(kind), _) => match &kind.tree.value {
                    Value::Text(text) => Choice {
                        name: text,
                        span: &kind.tree.span,
                        content: Content::Beside(entries, &tree.span),
                    },
                    other => {
                        let wrong: Problem = de::Error::custom(format!(
                            "{}, where one of `{}` is expected",
                            other.name(),
                            variants.join("`, `")
                        ));
                        return Err(wrong.at(&kind.tree.span).within("kind"));
                    }
                },
                (None, [only]) if variants.contains(&only.key.as_str()) => Choice {
                    name: &only.key,
                    span: &only.span,
                    content: Content::Below(&only.tree),
                },
                _ => {
                    let wrong: Problem =
                        de::Error::custom(format!("`kind` is missing: {}", list(variants)));
                    return Err(wrong.at(&tree.span));
                }
            },
            other => {
                let wrong: Problem = de::Error::custom(format!(
                    "{}, where one of `{}` is expected",
                    other.name(),
                    variants.join("`, `")
                ));
                return Err(wrong.at(&tree.span));
            }
        };
        visitor
            .visit_enum(chosen)
            .map_err(|error: Problem| error.at(&tree.span))
    }

    serde::forward_to_deserialize_any! {
        bool i128 u128 f32 char str string bytes byte_buf unit unit_struct newtype_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// The items of a list.
struct List<'a> {
    items: core::iter::Enumerate<core::slice::Iter<'a, Tree>>,
    key: &'a str,
}

impl<'de> de::SeqAccess<'de> for &mut List<'_> {
    type Error = Problem;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Problem> {
        let Some((index, tree)) = self.items.next() else {
            return Ok(None);
        };
        let reader = Reader {
            tree,
            key: self.key,
        };
        seed.deserialize(reader)
            .map(Some)
            .map_err(|error| error.at(&tree.span).within(&index.to_string()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// The entries of a table.
struct Table<'a> {
    entries: Vec<&'a Entry>,
    next: usize,
}

impl<'de> de::MapAccess<'de> for Table<'_> {
    type Error = Problem;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Problem> {
        let Some(entry) = self.entries.get(self.next) else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, Problem> = entry.key.as_str().into_deserializer();
        seed.deserialize(key)
            .map(Some)
            .map_err(|error| error.at(&entry.span).within(&entry.key))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Problem> {
        let Some(entry) = self.entries.get(self.next) else {
            return Err(de::Error::custom("a key without a value"));
        };
        self.next += 1;
        let reader = Reader {
            tree: &entry.tree,
            key: &entry.key,
        };
        seed.deserialize(reader)
            .map_err(|error| error.at(&entry.tree.span).within(&entry.key))
    }
}

/// The settings of a choice.
enum Content<'a> {
    Nothing,
    /// All keys of the table but `kind`.
    Beside(&'a [Entry], &'a Span),
    /// The value of the only key of the table, which is the name of the choice.
    Below(&'a Tree),
}

struct Choice<'a> {
    name: &'a str,
    span: &'a Span,
    content: Content<'a>,
}

impl<'de, 'a> de::EnumAccess<'de> for Choice<'a> {
    type Error = Problem;
    type Variant = Content<'a>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Content<'a>), Problem> {
        let name: StrDeserializer<'_, Problem> = self.name.into_deserializer();
        let variant = seed.deserialize(name).map_err(|error| {
            let error = error.at(self.span);
            match self.content {
                Content::Beside(..) => error.within("kind"),
                _ => error,
            }
        })?;
        Ok((variant, self.content))
    }
}

impl Content<'_> {
    fn table<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self {
            Self::Nothing => visitor.visit_map(Table {
                entries: Vec::new(),
                next: 0,
            }),
            Self::Beside(entries, span) => visitor
                .visit_map(Table {
                    entries: entries.iter().filter(|e| e.key != "kind").collect(),
                    next: 0,
                })
                .map_err(|error: Problem| error.at(span)),
            Self::Below(tree) => Reader::new(tree).deserialize_any(visitor),
        }
    }
}

impl<'de> de::VariantAccess<'de> for Content<'_> {
    type Error = Problem;

    fn unit_variant(self) -> Result<(), Problem> {
        let extra = match &self {
            Self::Nothing => None,
            Self::Beside(entries, _) => entries.iter().find(|entry| entry.key != "kind"),
            Self::Below(tree) => match &tree.value {
                Value::Table(entries) => entries.first(),
                other => {
                    let wrong: Problem =
                        de::Error::custom(format!("{}, where nothing is expected", other.name()));
                    return Err(wrong.at(&tree.span));
                }
            },
        };
        match extra {
            None => Ok(()),
            Some(entry) => {
                let wrong: Problem =
                    de::Error::custom(format!("there is no key `{}` here", entry.key));
                Err(wrong.at(&entry.span).within(&entry.key))
            }
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Problem> {
        match self {
            Self::Below(tree) => seed.deserialize(Reader::new(tree)),
            rest => seed.deserialize(Rest(rest)),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Problem> {
        self.table(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.table(visitor)
    }
}

/// What stands beside a `kind`, as a struct.
struct Rest<'a>(Content<'a>);

impl<'de> Deserializer<'de> for Rest<'_> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.0.table(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool u8 u16 u32 u64 i8 i16 i32 i64 i128 u128 f32 f64 char str string bytes byte_buf unit option
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

//! The options of a method by name, their values as text: what command lines set and files keep.

use super::Method;
use crate::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;

/// An options struct whose fields have names; [`options!`] writes it.
pub(crate) trait Options {
    /// Every field, to read or to set.
    fn options(&mut self) -> Vec<(&'static str, &mut dyn Setting)>;
}

/// The value of an option.
pub(crate) trait Setting {
    /// As text, which [`set`](Self::set) takes back without loss.
    fn text(&self) -> String;

    /// Takes the text, or says what would have been right.
    fn set(&mut self, text: &str) -> Result<(), &'static str>;
}

/// An options struct: every field with its default, and all of them by name.
macro_rules! options {
    (
        $(#[$about:meta])*
        pub struct $method:ident { $($(#[$doc:meta])* pub $field:ident: $type:ty = $default:expr,)* }
    ) => {
        $(#[$about])*
        pub struct $method { $($(#[$doc])* pub $field: $type,)* }

        impl Default for $method {
            fn default() -> Self {
                Self { $($field: $default),* }
            }
        }

        impl $crate::infer::options::Options for $method {
            fn options(&mut self) -> Vec<(&'static str, &mut dyn $crate::infer::options::Setting)> {
                let Self { $($field),* } = self;
                vec![$((stringify!($field), $field)),*]
            }
        }
    };
}

/// What methods have by name: their own and those of their options.
macro_rules! by_name {
    ($method:ident, $self:ident, $options:expr) => {
        impl $method {
            /// Every option: its name, which is that of its field, and its value as text.
            pub fn options(&self) -> std::collections::BTreeMap<&'static str, String> {
                let $self = &mut self.clone();
                $crate::infer::options::texts($options)
            }

            /// Sets the option called `name`.
            ///
            /// # Errors
            /// [`Error::NoSuchOption`](crate::Error::NoSuchOption) if the method has no option of that name,
            /// [`Error::BadOption`](crate::Error::BadOption) if the text is not a value for it. Whether the value suits
            /// the table is seen when fitting.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), $crate::Error> {
                let (method, $self) = (self.name(), self);
                $crate::infer::options::set($options, method, name, value)
            }
        }

        impl From<&$method> for $crate::infer::MethodRecord {
            fn from(method: &$method) -> Self {
                Self::new(method.name(), method.options())
            }
        }
    };
}

/// The one method of a kind of model, by its name.
macro_rules! one_method {
    ($method:ident = $name:literal) => {
        impl $method {
            /// Its name, as users type it.
            pub const NAME: &'static str = $name;
            pub(crate) const NAMES: &[&str] = &[$name];

            #[allow(clippy::unused_self, reason = "as that of methods among others")]
            pub(crate) fn name(&self) -> &'static str {
                $name
            }

            pub(crate) fn from_name(name: &str) -> Option<Self> {
                (name == $name).then(Self::default)
            }
        }

        $crate::infer::options::by_name!($method, method, method);

        impl TryFrom<&$crate::infer::MethodRecord> for $method {
            type Error = $crate::Error;

            /// The method again, without a start that was given, which is not kept.
            fn try_from(record: &$crate::infer::MethodRecord) -> Result<Self, $crate::Error> {
                let mut method = Self::default();
                let mut kept = record.options.iter().filter(|(name, _)| *name != "init");
                kept.try_for_each(|(name, value)| method.set(name, value))?;
                Ok(method)
            }
        }
    };
}

/// Several methods: one line gives each its variant, its name and its options.
macro_rules! methods {
    (
        $(#[$about:meta])*
        pub enum $methods:ident { $($(#[$doc:meta])* $variant:ident($method:ident) = $name:literal;)* }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $methods {
            $($(#[$doc])* $variant($method),)*
        }

        impl $methods {
            /// The names of all methods.
            pub const NAMES: &[&str] = &[$($name),*];

            /// The method's name, as users type it and files keep it.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// The method of that name with its default options.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant($method::default())),)*
                    _ => None,
                }
            }

            /// The method's options, to read or to set by name.
            fn method(&mut self) -> &mut dyn $crate::infer::options::Options {
                match self {
                    $(Self::$variant(method) => method,)*
                }
            }
        }

        $crate::infer::options::by_name!($methods, method, method.method());
    };
}

/// Names the variants of an option that is a choice; those after the semicolon are given and cannot be named.
macro_rules! words {
    (
        $choice:ident {
            $($variant:ident = $word:literal),* $(,)?
            $(; $($given:pat => $said:literal),* $(,)?)?
        },
        $expected:literal
    ) => {
        impl $crate::infer::options::Setting for $choice {
            fn text(&self) -> String {
                match self { $(Self::$variant => $word,)* $($($given => $said,)*)? }.to_owned()
            }

            fn set(&mut self, text: &str) -> Result<(), &'static str> {
                *self = match text { $($word => Self::$variant,)* _ => return Err($expected) };
                Ok(())
            }
        }
    };
}

/// An option that is a word or a number.
macro_rules! word_or_number {
    ($type:ty: $no:ident = $word:literal, $number:ident, $expected:literal) => {
        impl $crate::infer::options::Setting for $type {
            fn text(&self) -> String {
                match self {
                    Self::$no => $word.to_owned(),
                    Self::$number(number) => format!("{number:?}"),
                }
            }

            fn set(&mut self, text: &str) -> Result<(), &'static str> {
                *self = match text.trim() {
                    $word => Self::$no,
                    number => Self::$number(number.parse().map_err(|_| $expected)?),
                };
                Ok(())
            }
        }
    };
}

/// A start that may be given, which cannot be named.
macro_rules! start {
    ($type:ty: $word:literal, $expected:literal) => {
        impl $crate::infer::options::Setting for $type {
            fn text(&self) -> String {
                if self.is_none() { $word } else { "given" }.to_owned()
            }

            fn set(&mut self, text: &str) -> Result<(), &'static str> {
                match text {
                    $word => *self = None,
                    _ => return Err($expected),
                }
                Ok(())
            }
        }
    };
}

pub(crate) use {by_name, methods, one_method, options, start, word_or_number, words};

/// Numbers and switches read and write themselves: `{:?}` of an f64 is the shortest text that gives
/// its bits back.
macro_rules! plain {
    ($($type:ty: $expected:literal),*) => {
        $(impl Setting for $type {
            fn text(&self) -> String {
                format!("{self:?}")
            }

            fn set(&mut self, text: &str) -> Result<(), &'static str> {
                *self = text.trim().parse().map_err(|_| $expected)?;
                Ok(())
            }
        })*
    };
}

plain!(usize: "a whole number", u64: "a whole number", f64: "a number", bool: "true or false");

word_or_number!(Option<usize>: None = "all", Some, "all, or a whole number");
word_or_number!(Option<f64>: None = "none", Some, "none, or a number");

impl<T: Debug + FromStr> Setting for Option<Vec<T>> {
    fn text(&self) -> String {
        self.as_ref().map_or("none".to_owned(), |numbers| format!("{numbers:?}"))
    }

    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        const EXPECTED: &str = "none, or a list of numbers such as [2, 1]";
        *self = match text.trim() {
            "none" => None,
            "[]" => Some(Vec::new()),
            list => {
                let inner = list.strip_prefix('[').and_then(|l| l.strip_suffix(']')).ok_or(EXPECTED)?;
                let numbers = inner.split(',').map(|number| number.trim().parse());
                Some(numbers.collect::<Result<_, _>>().map_err(|_| EXPECTED)?)
            }
        };
        Ok(())
    }
}

/// Every option of a method: its name, which is that of its field, and its value as text.
pub(crate) fn texts(method: &mut dyn Options) -> BTreeMap<&'static str, String> {
    method.options().into_iter().map(|(name, value)| (name, value.text())).collect()
}

/// Sets the option of the method `method` that is called `name`.
pub(crate) fn set(of: &mut dyn Options, method: &'static str, name: &str, value: &str) -> Result<(), Error> {
    let mut options = of.options();
    let Some((option, setting)) = options.iter_mut().find(|(option, _)| *option == name) else {
        let mut known: Vec<&str> = options.iter().map(|(option, _)| *option).collect();
        known.sort_unstable();
        return Err(Error::NoSuchOption { method, option: name.to_owned(), known: known.join(", ") });
    };
    let option = *option;
    setting.set(value).map_err(|expected| Error::BadOption { option, value: value.to_owned(), expected })
}

/// A [`Method`] written down: what remains of it in a file, readable also where the method itself is
/// unknown.
///
/// ```
/// use covary::infer::{Em, Method, MethodRecord};
/// let method = Method::Em(Em { tolerance: 1e-9, ..Em::default() });
/// let record = MethodRecord::from(&method);
/// assert_eq!((record.name.as_str(), record.options["tolerance"].as_str()), ("em", "1e-9"));
/// assert_eq!(record.to_method()?, method);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodRecord {
    /// The method's name, as users type it.
    pub name: String,
    /// Every option by name, its value as text. A start that was given is only `given`: its
    /// parameters are not kept.
    pub options: BTreeMap<String, String>,
}

impl MethodRecord {
    pub(crate) fn new(name: &str, options: BTreeMap<&'static str, String>) -> Self {
        let options = options.into_iter().map(|(name, value)| (name.to_owned(), value));
        Self { name: name.to_owned(), options: options.collect() }
    }

    /// The method, to fit again.
    ///
    /// # Errors
    /// [`Error::NoSuchMethod`] for a method this version does not have, and as [`Method::set`]; among
    /// these a start that was given, which is not kept.
    pub fn to_method(&self) -> Result<Method, Error> {
        let mut method = Method::from_name(&self.name).ok_or_else(|| Error::NoSuchMethod {
            name: self.name.clone(),
            known: Method::NAMES.join(", "),
        })?;
        for (name, value) in &self.options {
            method.set(name, value)?;
        }
        Ok(method)
    }
}

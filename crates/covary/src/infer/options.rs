//! The options of a method by name, their values as text: what command lines set and files keep.

use super::{Method, MixtureEm};
use crate::Error;
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

/// Names the fields of an options struct; a forgotten one does not compile.
macro_rules! options {
    ($method:ident { $($field:ident),* $(,)? }) => {
        impl $crate::infer::options::Options for $method {
            fn options(&mut self) -> Vec<(&'static str, &mut dyn $crate::infer::options::Setting)> {
                let Self { $($field),* } = self;
                vec![$((stringify!($field), $field)),*]
            }
        }
    };
}

/// Names the variants of an option that is a choice.
macro_rules! words {
    ($choice:ident { $($variant:ident = $word:literal),* $(,)? }, $expected:literal) => {
        impl $crate::infer::options::Setting for $choice {
            fn text(&self) -> String {
                match self { $(Self::$variant => $word,)* }.to_owned()
            }

            fn set(&mut self, text: &str) -> Result<(), &'static str> {
                *self = match text { $($word => Self::$variant,)* _ => return Err($expected) };
                Ok(())
            }
        }
    };
}

pub(crate) use {options, words};

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

impl Setting for Option<usize> {
    fn text(&self) -> String {
        self.map_or("all".to_owned(), |n| n.to_string())
    }

    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        *self = match text.trim() {
            "all" => None,
            number => Some(number.parse().map_err(|_| "all, or a whole number")?),
        };
        Ok(())
    }
}

impl Setting for Option<f64> {
    fn text(&self) -> String {
        self.map_or("none".to_owned(), |number| format!("{number:?}"))
    }

    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        *self = match text.trim() {
            "none" => None,
            number => Some(number.parse().map_err(|_| "none, or a number")?),
        };
        Ok(())
    }
}

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

impl Method {
    /// Every option of the method: its name, which is that of its field, and its value as text.
    pub fn options(&self) -> BTreeMap<&'static str, String> {
        texts(self.clone().method())
    }

    /// Sets the option called `name`, whichever the method.
    ///
    /// ```
    /// use covary::Method;
    /// let mut method = Method::from_name("em").unwrap();
    /// method.set("max_iterations", "50")?;
    /// assert_eq!(method.options()["max_iterations"], "50");
    /// let refused = Method::from_name("spectral").unwrap().set("max_iterations", "50").unwrap_err();
    /// assert_eq!(refused.to_string(), "spectral has no option `max_iterations`; it has seed, solver");
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchOption`] if the method has no option of that name, [`Error::BadOption`] if the
    /// text is not a value for it. Whether the value suits the table is seen when fitting.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let method = self.name();
        set(self.method(), method, name, value)
    }
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodRecord {
    /// The method's name, as users type it.
    pub name: String,
    /// Every option by name, its value as text. A start that was given is only `given`: its
    /// parameters are not kept.
    pub options: BTreeMap<String, String>,
}

impl From<&Method> for MethodRecord {
    fn from(method: &Method) -> Self {
        Self::new(method.name(), method.options())
    }
}

impl From<&MixtureEm> for MethodRecord {
    fn from(method: &MixtureEm) -> Self {
        Self::new(MixtureEm::NAME, texts(&mut method.clone()))
    }
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

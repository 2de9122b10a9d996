//! Numbers in JSON, which has none that are not finite: those are the texts `NaN`, `inf` and `-inf`. A field has
//! `#[serde(with = "crate::json")]`, be it one number, an optional one or a list.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Any number.
pub(crate) struct Number(pub(crate) f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() { to.serialize_f64(self.0) } else { to.collect_str(&self.0) }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Finite(f64),
            Word(String),
        }
        match Either::deserialize(from)? {
            Either::Finite(value) => Ok(Self(value)),
            Either::Word(word) => word.parse().map(Self).map_err(D::Error::custom),
        }
    }
}

/// What is made of numbers.
pub(crate) trait Numbers {
    type Json: Serialize + for<'de> Deserialize<'de>;
    fn json(&self) -> Self::Json;
    fn of(json: Self::Json) -> Self;
}

impl Numbers for f64 {
    type Json = Number;

    fn json(&self) -> Number {
        Number(*self)
    }

    fn of(json: Number) -> Self {
        json.0
    }
}

impl Numbers for Option<f64> {
    type Json = Option<Number>;

    fn json(&self) -> Option<Number> {
        self.map(Number)
    }

    fn of(json: Option<Number>) -> Self {
        json.map(|number| number.0)
    }
}

impl Numbers for Vec<f64> {
    type Json = Vec<Number>;

    fn json(&self) -> Vec<Number> {
        self.iter().copied().map(Number).collect()
    }

    fn of(json: Vec<Number>) -> Self {
        json.into_iter().map(|number| number.0).collect()
    }
}

pub(crate) fn serialize<T: Numbers, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    value.json().serialize(to)
}

pub(crate) fn deserialize<'de, T: Numbers, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::Json::deserialize(from).map(T::of)
}

/// What files from before a field leave out, and what is left out where it is still so.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

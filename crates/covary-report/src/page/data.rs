//! The numbers behind a figure as a table: what its download button gives.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::io::Write;

/// What a page keeps of the data behind a figure.
#[derive(Clone)]
pub(crate) enum Data {
    /// They make no table.
    None,
    /// As they are.
    Plain(String),
    /// Deflated, in base64: the page unpacks them when they are asked for.
    Packed {
        /// As they are kept.
        kept: String,
        /// Their bytes.
        bytes: usize,
    },
    /// Too large for a page that is sent around, with the number of its bytes.
    LeftOut(usize),
}

/// Bytes that are kept as they are, and those that are kept packed.
const MOST_PLAIN: usize = 20_000;
const MOST_PACKED: usize = 150_000;

impl Data {
    pub(super) fn of(numbers: &Value) -> Self {
        let csv = csv(numbers);
        match csv.len() {
            0 => Self::None,
            1..=MOST_PLAIN => Self::Plain(csv),
            bytes => match packed(&csv) {
                kept if kept.len() <= MOST_PACKED => Self::Packed { kept, bytes },
                _ => Self::LeftOut(bytes),
            },
        }
    }

    /// The same, left out if it takes more than the room that is left of a page, which it takes its part of.
    pub(super) fn within(&self, room: &mut usize) -> Cow<'_, Self> {
        match self {
            Self::Packed { kept, bytes } if kept.len() > *room => Cow::Owned(Self::LeftOut(*bytes)),
            Self::Packed { kept, .. } => {
                *room -= kept.len();
                Cow::Borrowed(self)
            }
            _ => Cow::Borrowed(self),
        }
    }
}

/// Deflated (zlib), then letters that HTML takes as they are.
fn packed(text: &str) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).expect("memory takes all");
    BASE64.encode(encoder.finish().expect("memory takes all"))
}

/// The table with most cells that the numbers hold: a list of things, each a row, or lists of the same length beside each
/// other. Numbers that are in neither are on the page or in `--json`.
pub(super) fn csv(numbers: &Value) -> String {
    let Some(fields) = numbers.as_object() else { return String::new() };
    let lists = fields.iter().filter_map(|(name, value)| Some((name, value.as_array()?)));
    let of_things =
        lists.clone().filter(|(_, list)| list.first().is_some_and(Value::is_object)).map(|(_, list)| {
            list.iter().map(|thing| thing.as_object().map(cells).unwrap_or_default()).collect::<Vec<_>>()
        });
    let plain = |list: &[Value]| !list.is_empty() && list.iter().all(|v| !v.is_object() && depth(v) < 2);
    let lengths: Vec<usize> =
        lists.clone().filter(|(_, list)| plain(list)).map(|(_, list)| list.len()).collect();
    let beside = lengths.iter().map(|&length| {
        let with = lists.clone().filter(|(_, list)| plain(list) && list.len() == length);
        let columns: Vec<(&String, &Vec<Value>)> = with.collect();
        (0..length)
            .map(|i| {
                let row: Map<String, Value> =
                    columns.iter().map(|(name, list)| ((*name).clone(), list[i].clone())).collect();
                cells(&row)
            })
            .collect::<Vec<_>>()
    });
    let size = |rows: &Vec<Vec<(String, String)>>| rows.iter().map(Vec::len).sum::<usize>();
    let Some(rows) = of_things.chain(beside).max_by_key(size) else { return String::new() };
    let mut heads: Vec<String> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !heads.contains(name) {
            heads.push(name.clone());
        }
    }
    let line = |row: &Vec<(String, String)>| {
        let of =
            |head: &String| row.iter().find(|(name, _)| name == head).map_or("", |(_, cell)| cell.as_str());
        heads.iter().map(of).collect::<Vec<_>>().join(",")
    };
    let head = heads.iter().map(|head| quoted(head)).collect::<Vec<_>>().join(",");
    std::iter::once(head).chain(rows.iter().map(line)).map(|line| line + "\n").collect()
}

/// Lists within lists.
fn depth(value: &Value) -> usize {
    value.as_array().map_or(0, |list| 1 + list.iter().map(depth).max().unwrap_or(0))
}

/// The cells of a row: a list within it has a numbered cell for each entry, a thing one for each of its parts.
fn cells(row: &Map<String, Value>) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for (name, value) in row {
        match value {
            Value::Array(list) => {
                let entries = list.iter().enumerate();
                let row: Map<String, Value> =
                    entries.map(|(k, v)| (format!("{name}_{}", k + 1), v.clone())).collect();
                out.extend(cells(&row));
            }
            Value::Object(parts) => {
                let row: Map<String, Value> =
                    parts.iter().map(|(part, v)| (format!("{name}_{part}"), v.clone())).collect();
                out.extend(cells(&row));
            }
            Value::Null => out.push((name.clone(), String::new())),
            Value::String(text) => out.push((name.clone(), quoted(text))),
            Value::Number(number) => out.push((name.clone(), rounded(number))),
            Value::Bool(value) => out.push((name.clone(), value.to_string())),
        }
    }
    out
}

/// A number with six digits, which are more than a figure shows: a page stays small enough to be sent around.
fn rounded(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => format!("{value:.5e}")
            .parse::<f64>()
            .map_or_else(|_| number.to_string(), |value| value.to_string()),
        _ => number.to_string(),
    }
}

/// Text as a cell: what a spreadsheet would take for a formula stays text.
fn quoted(text: &str) -> String {
    let text =
        if text.starts_with(['=', '+', '@', '-', '\t', '\r']) { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::{Data, csv, packed};
    use serde_json::json;
    use std::io::Read;

    #[test]
    fn data_of_large_figures_are_packed_and_come_out_whole() {
        let base64 = |text: &str| {
            let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            let bits: Vec<u32> = text.chars().filter_map(|c| digits.find(c)).map(|d| d as u32).collect();
            let bytes = bits.chunks(4).flat_map(|four| {
                let all = four.iter().enumerate().fold(0, |all, (k, d)| all | d << (18 - 6 * k));
                [(all >> 16) as u8, (all >> 8) as u8, all as u8].into_iter().take(four.len() - 1)
            });
            bytes.collect::<Vec<u8>>()
        };
        for text in ["", "a", "ab", "abc", "größe,1\n"] {
            let mut out = String::new();
            let bytes = base64(&packed(text));
            flate2::read::ZlibDecoder::new(&bytes[..]).read_to_string(&mut out).unwrap();
            assert_eq!(out, text);
        }
        let value = |k: usize| ((k * 7919) % 1009) as f64 / 31.0;
        let points = |n: usize| json!({ "points": (0..n).map(|k| json!({ "x": value(k), "y": value(k + 1) })).collect::<Vec<_>>() });
        assert!(matches!(Data::of(&points(10)), Data::Plain(_)));
        let Data::Packed { kept, .. } = Data::of(&points(5000)) else { panic!("5000 points are packed") };
        let mut out = String::new();
        flate2::read::ZlibDecoder::new(&base64(&kept)[..]).read_to_string(&mut out).unwrap();
        assert_eq!(out, csv(&points(5000)));
        assert!(kept.len() < out.len() / 2, "{} of {}", kept.len(), out.len());
        assert!(matches!(Data::of(&json!({ "n": 3 })), Data::None));
        let (packed, size) = (Data::of(&points(5000)), kept.len());
        let mut room = size + 1;
        assert!(matches!(*packed.within(&mut room), Data::Packed { .. }) && room == 1);
        assert!(matches!(*packed.within(&mut room), Data::LeftOut(bytes) if bytes > size) && room == 1);
        assert!(matches!(*Data::of(&points(10)).within(&mut 0), Data::Plain(_)));
    }

    #[test]
    fn data_that_no_page_should_carry_are_left_out() {
        let mut state = 1_u64;
        let mut chance = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / 1e9
        };
        let values: Vec<f64> = (0..60_000).map(|_| chance()).collect();
        let left_out = Data::of(&json!({ "values": values }));
        assert!(matches!(left_out, Data::LeftOut(bytes) if bytes > 400_000));
    }

    #[test]
    fn the_largest_table_of_the_numbers_is_written() {
        let of_things = json!({ "subject": "s", "points": [{ "row": 1, "at": [0.333_333_333_3, -1.0] }, { "row": 2, "at": [0.25, null] }] });
        assert_eq!(csv(&of_things), "at_1,at_2,row\n0.333333,-1,1\n0.25,,2\n");
        let beside = json!({ "n": 3, "columns": ["a", "b,c"], "loadings": [[1.0, 2.0], [3.0, 4.0]] });
        assert_eq!(csv(&beside), "columns,loadings_1,loadings_2\na,1,2\n\"b,c\",3,4\n");
        assert_eq!(csv(&json!({ "n": 3 })), "");
    }

    #[test]
    fn a_name_is_no_formula() {
        let hostile = json!({ "columns": ["=cmd|'/C calc'!A0", "\"quoted\""], "value": [1, 2] });
        assert_eq!(csv(&hostile), "columns,value\n'=cmd|'/C calc'!A0,1\n\"\"\"quoted\"\"\",2\n");
    }
}

//! The numbers behind a figure as a table: what its download button gives.

use serde_json::{Map, Number, Value};

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
    use super::csv;
    use serde_json::json;

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

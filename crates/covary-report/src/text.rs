//! How wide text is, before anyone draws it.
//!
//! Widths are those of the shipped font. Readers of an SVG may have another one, somewhat narrower as
//! a rule, so that what fits here fits there.

use crate::widths;

/// Weight of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weight {
    /// Labels.
    #[default]
    Regular,
    /// Titles.
    Bold,
}

/// Width of one line in units of `size`.
///
/// ```
/// use covary_report::text::{width, Weight};
/// assert!(width("iiii", 10.0, Weight::Regular) < width("MMMM", 10.0, Weight::Regular));
/// assert_eq!(width("e\u{301}", 10.0, Weight::Regular), width("e", 10.0, Weight::Regular));   // an accent has none
/// ```
pub fn width(text: &str, size: f64, weight: Weight) -> f64 {
    text.chars().map(|c| f64::from(letter(c, weight))).sum::<f64>() * size / 1000.0
}

fn letter(c: char, weight: Weight) -> u16 {
    let table = match weight {
        Weight::Regular => widths::REGULAR,
        Weight::Bold => widths::BOLD,
    };
    let code = c as u32;
    let known = table.iter().find_map(|(first, run)| run.get(code.checked_sub(*first)? as usize));
    match (known, code) {
        (Some(&width), _) => width,
        // Marks over letters, joiners and variation selectors take no room.
        (
            None,
            0x300..=0x36f | 0x591..=0x5c7 | 0x610..=0x61a | 0x64b..=0x65f | 0x200b..=0x200f | 0xfe00..=0xfe0f,
        ) => 0,
        // Chinese, Japanese, Korean; emoji.
        (None, 0x1100..=0x11ff | 0x2e80..=0x9fff | 0xac00..=0xd7ff | 0xf900..=0xfaff | 0xff00..=0xffef) => {
            1000
        }
        (None, 0x1f000..) => 1250,
        (None, _) => 640,
    }
}

/// The text as far as it fits, ended by an ellipsis if it was cut.
///
/// ```
/// use covary_report::text::{shorten, width, Weight};
/// let cut = shorten("alcalinity of ash", 11.0, 60.0);
/// assert!(cut.ends_with('…') && width(&cut, 11.0, Weight::Regular) <= 60.0);
/// assert_eq!(shorten("ash", 11.0, 60.0), "ash");
/// ```
pub fn shorten(text: &str, size: f64, room: f64) -> String {
    let text = clean(text);
    if width(&text, size, Weight::Regular) <= room {
        return text;
    }
    let mut left = 1000.0 * room / size - f64::from(letter('…', Weight::Regular));
    let mut end = 0;
    for (at, c) in text.char_indices() {
        left -= f64::from(letter(c, Weight::Regular));
        if left < 0.0 {
            break;
        }
        end = at + c.len_utf8();
    }
    // A joiner left at the end would glue the ellipsis to half an emoji.
    format!("{}…", text[..end].trim_end_matches(['\u{200d}', '\u{fe0f}', ' ']))
}

/// Names without the words that all of them begin with, but the last of these, if any is too long for the room: what is left of
/// them differs.
///
/// ```
/// use covary_report::text::without_shared_words;
/// let names = ["carbon at station 1".to_owned(), "carbon at station 2".to_owned()];
/// assert_eq!(without_shared_words(&names, 11.0, 60.0), ["…station 1", "…station 2"]);
/// assert_eq!(without_shared_words(&names, 11.0, 600.0), names);
/// ```
pub fn without_shared_words(names: &[String], size: f64, room: f64) -> Vec<String> {
    let fits = |name: &String| width(name, size, Weight::Regular) <= room;
    let Some(first) = names.first().filter(|_| names.len() > 1 && !names.iter().all(fits)) else {
        return names.to_vec();
    };
    let words = |at: &usize| names.iter().all(|name| name.get(..*at) == first.get(..*at) && name.len() > *at);
    let ends = first.char_indices().filter(|(_, c)| *c == ' ').map(|(at, _)| at + 1);
    match ends.filter(words).collect::<Vec<_>>()[..] {
        [.., shared, _] | [shared] => names.iter().map(|name| format!("…{}", &name[shared..])).collect(),
        [] => names.to_vec(),
    }
}

/// A name as far as what is said when a mark is pointed at has room for it.
pub(crate) fn in_tip(name: &str) -> String {
    shorten(name, 11.0, 240.0)
}

/// Text on one line, without what XML forbids and without marks that would turn what follows around.
pub(crate) fn clean(text: &str) -> String {
    let forbidden = |c: &char| matches!(*c as u32, 0x200e | 0x200f | 0x202a..=0x202e | 0x2066..=0x2069 | 0xfeff | 0xfffe | 0xffff);
    let shown =
        text.chars().map(|c| if c.is_control() || c == '\u{2028}' || c == '\u{2029}' { ' ' } else { c });
    shown.filter(|c| !forbidden(c)).collect()
}

/// Lines that fit a width, at most `most` of them, the last one shortened.
pub(crate) fn wrap(text: &str, size: f64, weight: Weight, room: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in clean(text).split(' ').filter(|w| !w.is_empty()) {
        match lines.last_mut() {
            Some(line) if width(line, size, weight) + width(word, size, weight) + 0.32 * size <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.len() > most {
        let rest = lines.split_off(most - 1).join(" ");
        lines.push(rest);
    }
    // Bold letters are about a tenth wider than those that are measured when text is cut.
    let room = if weight == Weight::Bold { 0.88 * room } else { room };
    for line in &mut lines {
        if width(line, size, weight) > room {
            *line = shorten(line, size, room);
        }
    }
    lines
}

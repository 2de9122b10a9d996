//! How wide text is, before anyone draws it.
//!
//! Widths are those of the shipped font. Readers of an SVG may have another one, somewhat narrower as
//! a rule, so that what fits here fits there.

use crate::widths;
use std::collections::{HashMap, HashSet};

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
        (None, 0x1f000..) => 1250,
        (None, _) => {
            if is_wide(c) {
                1000
            } else {
                640
            }
        }
    }
}

/// Chinese, Japanese, Korean; emoji.
fn is_wide(c: char) -> bool {
    matches!(c as u32, 0x1100..=0x11ff | 0x2e80..=0x9fff | 0xac00..=0xd7ff | 0xf900..=0xfaff | 0xff00..=0xffef | 0x1f000..)
}

/// How much room letters take: those of the shipped font at a size, or the cells of a terminal.
#[derive(Clone, Copy)]
struct Measure {
    /// In thousandths of `size`.
    letter: fn(char) -> u16,
    size: f64,
}

impl Measure {
    fn font(size: f64, weight: Weight) -> Self {
        let letter: fn(char) -> u16 = match weight {
            Weight::Regular => |c| letter(c, Weight::Regular),
            Weight::Bold => |c| letter(c, Weight::Bold),
        };
        Self { letter, size }
    }

    fn terminal() -> Self {
        Self { letter: |c| 1000 * cells(c), size: 1.0 }
    }

    fn width(self, text: &str) -> f64 {
        text.chars().map(|c| f64::from((self.letter)(c))).sum::<f64>() * self.size / 1000.0
    }

    /// What `room` leaves beside an ellipsis, in thousandths of the size.
    fn beside_ellipsis(self, room: f64) -> f64 {
        1000.0 * room / self.size - f64::from((self.letter)('…'))
    }
}

/// Cells of a terminal that a letter takes.
fn cells(c: char) -> u16 {
    if is_wide(c) { 2 } else { u16::from(letter(c, Weight::Regular) > 0) }
}

/// Columns of a terminal that a line takes.
///
/// ```
/// assert_eq!(covary_report::text::columns("größe"), 5);
/// assert_eq!(covary_report::text::columns("温度"), 4);
/// ```
pub fn columns(text: &str) -> usize {
    text.chars().map(|c| usize::from(cells(c))).sum()
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
    cut(text, Measure::font(size, Weight::Regular), room)
}

fn cut(text: &str, by: Measure, room: f64) -> String {
    let text = clean(text);
    if by.width(&text) <= room {
        return text;
    }
    let mut left = by.beside_ellipsis(room);
    let mut end = 0;
    for (at, c) in text.char_indices() {
        left -= f64::from((by.letter)(c));
        if left < 0.0 {
            break;
        }
        end = at + c.len_utf8();
    }
    // A joiner left at the end would glue the ellipsis to half an emoji.
    format!("{}…", text[..end].trim_end_matches(['\u{200d}', '\u{fe0f}', ' ']))
}

/// Names as far as they fit, cut where they do not differ: the words that all of them begin with go first, but the
/// last of these, then the middle. Names that differ stay different if the room can hold the difference.
///
/// ```
/// use covary_report::text::{shortened, width, Weight};
/// let names = |of: [&str; 2]| of.map(str::to_owned);
/// let carbon = names(["carbon at station 1", "carbon at station 2"]);
/// assert_eq!(shortened(&carbon, 11.0, 60.0), ["…station 1", "…station 2"]);
/// assert_eq!(shortened(&carbon, 11.0, 600.0), carbon);
/// let cut = shortened(&names(["concentration_of_carbon_1", "phosphate_concentration_2"]), 11.0, 90.0);
/// assert!(cut[0].starts_with("conc") && cut[0].contains('…') && cut[0].ends_with("_1"), "{cut:?}");
/// assert!(cut.iter().all(|name| width(name, 11.0, Weight::Regular) <= 90.0));
/// let twice = [(4, 1), (4, 2), (8, 1), (8, 2)].map(|(h, k)| format!("iron_in_plasma_after_{h}_hours_replicate_{k}"));
/// assert_eq!(shortened(&twice, 11.0, 90.0), ["…4_hours…1", "…4_hours…2", "…8_hours…1", "…8_hours…2"]);
/// ```
pub fn shortened(names: &[String], size: f64, room: f64) -> Vec<String> {
    shortened_by(names, Measure::font(size, Weight::Regular), room)
}

/// The same for a terminal, where `room` is a number of columns.
///
/// ```
/// use covary_report::text::shortened_to;
/// let names = ["carbon at station 1", "carbon at station 2"].map(str::to_owned);
/// assert_eq!(shortened_to(&names, 12), ["…station 1", "…station 2"]);
/// ```
pub fn shortened_to(names: &[String], room: usize) -> Vec<String> {
    shortened_by(names, Measure::terminal(), room as f64)
}

fn shortened_by(names: &[String], by: Measure, room: f64) -> Vec<String> {
    // Letters of a word that are shown before the one that tells names apart.
    const MOST_BEFORE: usize = 10;
    let fits = |name: &String| by.width(name) <= room;
    let names: Vec<String> = names.iter().map(|name| clean(name)).collect();
    if names.iter().all(fits) {
        return names;
    }
    let shared = shared_words(&names);
    let ends: Vec<String> = names
        .iter()
        .map(|name| if shared == 0 { name.clone() } else { format!("…{}", &name[shared..]) })
        .map(|name| if fits(&name) { name } else { without_middle(&name, by, room) })
        .collect();
    // Where two became one, what is shown of both begins where they part.
    let mut alike: HashMap<&str, Vec<usize>> = HashMap::new();
    for (k, name) in ends.iter().enumerate() {
        alike.entry(name).or_default().push(k);
    }
    let twins = |k: usize| alike[ends[k].as_str()].iter().copied().find(|&j| names[j] != names[k]);
    let shown = |k: usize| match twins(k) {
        None => ends[k].clone(),
        Some(j) => {
            let part = names[k].chars().zip(names[j].chars()).take_while(|(a, b)| a == b).count();
            // From the word on in which they part, and the one before if they part where a word begins.
            let same: Vec<char> = names[k].chars().take(part).collect();
            let begin = |of: &[char]| of.iter().rposition(|c| BREAKS.contains(c)).map_or(0, |at| at + 1);
            let begins = match begin(&same) {
                at if at == part => begin(&same[..part.saturating_sub(1)]),
                at => at,
            };
            let from = if part - begins <= MOST_BEFORE { begins } else { part.saturating_sub(2) };
            let rest: String = names[k].chars().skip(from).collect();
            cut(&format!("…{rest}"), by, room)
        }
    };
    let shown: Vec<String> = (0..ends.len()).map(shown).collect();
    let told_apart = |of: &[String]| of.iter().collect::<HashSet<_>>().len();
    match words_that_differ(&names, by, room) {
        Some(words) if told_apart(&shown) < told_apart(&names) => words,
        _ => shown,
    }
}

/// The words in which names of equally many words differ, with as many of those next to them as all names have room for: those
/// after them first, which may be their units.
fn words_that_differ(names: &[String], by: Measure, room: f64) -> Option<Vec<String>> {
    let words: Vec<Vec<&str>> = names.iter().map(|name| name.split_inclusive(BREAKS).collect()).collect();
    let n = words.first()?.len();
    if words.iter().any(|of| of.len() != n) {
        return None;
    }
    let with = |kept: &[bool]| -> Vec<String> {
        let shown = |of: &Vec<&str>| {
            let mut text = String::new();
            for (k, word) in of.iter().enumerate() {
                match kept[k] {
                    true => text.push_str(word),
                    false if text.ends_with('…') => {}
                    false => text = format!("{}…", text.trim_end_matches(BREAKS)),
                }
            }
            text
        };
        words.iter().map(shown).collect()
    };
    let fits = |names: &[String]| names.iter().all(|name| by.width(name) <= room);
    let mut kept: Vec<bool> = (0..n).map(|k| words.iter().any(|of| of[k] != words[0][k])).collect();
    let mut found = Some(with(&kept)).filter(|names| fits(names))?;
    let differ: Vec<usize> = (0..n).filter(|&k| kept[k]).collect();
    let after = differ.iter().map(|k| k + 1).filter(|&k| k < n);
    let before = differ.iter().filter_map(|k| k.checked_sub(1));
    for k in after.chain(before) {
        let more: Vec<bool> = (0..n).map(|j| kept[j] || j == k).collect();
        let names = with(&more);
        if fits(&names) {
            (kept, found) = (more, names);
        }
    }
    Some(found)
}

/// Where words of a name end.
const BREAKS: [char; 5] = [' ', '_', '-', '/', ','];

/// Bytes of the words that all names begin with, without the last of these words.
fn shared_words(names: &[String]) -> usize {
    let Some(first) = names.first().filter(|_| names.len() > 1) else { return 0 };
    let shared =
        |at: &usize| names.iter().all(|name| name.get(..*at) == first.get(..*at) && name.len() > *at);
    let ends = first.char_indices().filter(|(_, c)| *c == ' ').map(|(at, _)| at + 1);
    match ends.filter(shared).collect::<Vec<_>>()[..] {
        [.., shared, _] | [shared] => shared,
        [] => 0,
    }
}

/// The beginning and the end of a name: more of the end, where numbers and units stand.
fn without_middle(name: &str, by: Measure, room: f64) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut left = by.beside_ellipsis(room);
    let (mut head, mut tail) = (0, letters.len());
    while head < tail {
        let from_head = head <= letters.len() - tail;
        let c = if from_head { letters[head] } else { letters[tail - 1] };
        left -= f64::from((by.letter)(c));
        if left < 0.0 {
            break;
        }
        if from_head { head += 1 } else { tail -= 1 }
    }
    let text = |of: &[char]| of.iter().collect::<String>();
    let glue = ['\u{200d}', '\u{fe0f}', ' '];
    let (head, tail) = (text(&letters[..head]), text(&letters[tail..]));
    format!("{}…{}", head.trim_end_matches(glue), tail.trim_start_matches(glue))
}

/// Names in one line each, or in up to `most`, where they fit only so; what does not fit is cut as by [`shortened`].
pub(crate) fn name_lines(names: &[String], size: f64, room: f64, most: usize) -> Vec<Vec<String>> {
    let fits = |text: &str| width(text, size, Weight::Regular) <= room;
    if most < 2 || names.iter().all(|name| fits(&clean(name))) {
        return shortened(names, size, room).into_iter().map(|name| vec![name]).collect();
    }
    // Two lines hold a little less than twice the room, since words are not broken.
    let cut = shortened(names, size, (most as f64 - 0.45) * room);
    let short = shortened(names, size, room);
    let lines = |(k, name): (usize, &String)| {
        let lines = broken_at_words(name, size, room);
        if lines.len() <= most && lines.iter().all(|line| fits(line)) {
            lines
        } else {
            vec![short[k].clone()]
        }
    };
    cut.iter().enumerate().map(lines).collect()
}

/// Lines that break after spaces, underscores, hyphens and slashes.
fn broken_at_words(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for piece in text.split_inclusive(BREAKS) {
        let line = lines.last_mut().expect("one was begun");
        let wide = width(line, size, Weight::Regular) + width(piece.trim_end(), size, Weight::Regular);
        if wide <= room || line.is_empty() { line.push_str(piece) } else { lines.push(piece.to_owned()) }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// A name as far as what is said when a mark is pointed at has room for it.
pub(crate) fn in_tip(name: &str) -> String {
    shorten(name, 11.0, 240.0)
}

/// A sentence as it begins: with a capital letter.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
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
    // A number keeps its per cent sign beside it.
    let text = clean(text).replace(" %", "\u{a0}%");
    for word in text.split(' ').filter(|w| !w.is_empty()) {
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
    lines.iter().map(|line| cut(line, Measure::font(size, weight), room).replace('\u{a0}', " ")).collect()
}

//! Files: the same bytes at any number of threads, JSON that reads back, text that stays text.

use crate::made;
use covary_reproduce::index::{self, LeftOut};
use covary_reproduce::{Comparison, Data, EXHIBITS, Part, Record, Row, Run, find};

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let files = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| made("chen-2018-fig-05", 5).files())
    };
    assert_eq!(files(1), files(3));
}

#[test]
fn facts_read_back_as_they_were() {
    let record = made("chen-2018-fig-11", 1);
    let names: Vec<String> = record.files().into_iter().map(|f| f.name).collect();
    assert_eq!(names, ["chen-2018-fig-11.json", "chen-2018-fig-11.md", "chen-2018-fig-11.svg"]);
    let back: Record = serde_json::from_str(&record.files()[0].text).expect("JSON");
    assert_eq!(back, record);
}

#[test]
fn another_seed_is_said_in_the_command() {
    let data = Data::none();
    let run = Run { seed: 3, most_repeats: Some(2), ..Run::new(&data) };
    let record = find("chen-2018-fig-05").expect("listed").record(&run).expect("made");
    assert_eq!(record.command, "covary reproduce chen-2018-fig-05 -o DIR --seed 3 --repeats 2");
    assert!(record.markdown(1).contains("seed 3"));
}

#[test]
fn pages_hold_their_figures_and_escape_their_words() {
    let mut record = made("chen-2018-fig-11", 1);
    record.notes.push("<b>a & b</b>".to_owned());
    record.notes.push("`backticks`".to_owned());
    let left_out = LeftOut { name: "x".to_owned(), why: "no <data>".to_owned() };
    let html = index::html(std::slice::from_ref(&record), std::slice::from_ref(&left_out));
    assert!(html.contains("<svg") && html.contains("prefers-color-scheme"));
    // A small picture of the figure, its verdict, and code between backticks.
    assert!(
        html.contains("<use href=\"#figure-chen-2018-fig-11\"")
            && html.contains("id=\"figure-chen-2018-fig-11\"")
    );
    assert!(html.contains("≈ 1 of 2 agree") && html.contains("<code>backticks</code>"), "{html}");
    assert!(html.contains("&lt;b&gt;a &amp; b&lt;/b&gt;") && html.contains("no &lt;data&gt;"));
    assert!(
        !html.contains("<b>")
            && !html.contains("http-equiv")
            && !html.contains("<script")
            && !html.contains(" src=")
    );
    let markdown = index::markdown(&[record], &[left_out]);
    assert!(markdown.contains("![") && markdown.contains("Left out: `x`: no <data>"));
}

#[test]
fn methods_have_columns_of_their_own() {
    let part = |name: &str, paper: &str, ours: &str, agrees| Part::new(name, paper, ours, agrees);
    let rows = |papers: [&str; 4]| {
        vec![
            Row::of_parts(
                "10 %",
                vec![part("EM", papers[0], "1.1", true), part("VB", papers[1], "1.2", true)],
            ),
            Row::of_parts(
                "40 %",
                vec![part("EM", papers[2], "2.1", true), part("VB", papers[3], "2.9", false)],
            )
            .why("chance"),
        ]
    };
    let mut record = made("chen-2018-fig-11", 1);
    let mut shown = |papers| {
        record.tables = vec![Comparison::with_paper("Errors", rows(papers))];
        let html = index::html(std::slice::from_ref(&record), &[]);
        assert!(
            html.contains("<th>EM</th><th>VB</th>") && html.contains("<td class=\"number\">1.1"),
            "{html}"
        );
        record.markdown(1)
    };
    // Where all differ the paper's stand in brackets, where rows or columns share theirs it is said once.
    let all = shown(["1", "2", "3", "4"]);
    assert!(all.contains("**Errors: ours (paper)**\n\n| quantity | EM | VB | difference |\n| --- | --- | --- | --- |\n| 10 % | 1.1 (1) | 1.2 (2) | agrees |"), "{all}");
    assert!(
        all.contains("| 40 % | 2.1 (3) | 2.9 ≠ (4) | differs |") && all.contains("- 40 %: chance"),
        "{all}"
    );
    let by_row = shown(["1", "1", "2", "2"]);
    assert!(
        by_row.contains("| quantity | paper | EM | VB | difference |")
            && by_row.contains("| 10 % | 1 | 1.1 | 1.2 |"),
        "{by_row}"
    );
    let by_column = shown(["1", "2", "1", "2"]);
    assert!(
        by_column.contains("**Errors (paper: EM 1, VB 2)**") && by_column.contains("| 40 % | 2.1 | 2.9 ≠ |"),
        "{by_column}"
    );
    assert_eq!(record.agreement(), (1, 2));
}

/// `docs/gallery/index.md` is what `covary reproduce all` makes of the pages beside it: every exhibit in order, with as many
/// rows as its page has, and the page itself.
#[test]
fn the_index_of_the_gallery_is_up_to_date() {
    let gallery = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gallery");
    let read = |name: &str| std::fs::read_to_string(gallery.join(name)).expect("a page of the gallery");
    let index = read("index.md");
    let listed: Vec<&str> = index.lines().filter(|line| line.starts_with("| <a href=")).collect();
    assert_eq!(listed.len(), EXHIBITS.len(), "one line for each exhibit");
    let mut sections = String::new();
    for (exhibit, line) in EXHIBITS.iter().zip(listed) {
        let page = read(&format!("{}.md", exhibit.name));
        let begins = format!(" | [{}]({}.md) | {} | ", exhibit.source, exhibit.name, exhibit.title);
        let (small, verdict) =
            line.split_once(&begins).unwrap_or_else(|| panic!("`{line}` is not of {}", exhibit.name));
        // The picture is the first one of the page.
        let file = small.split("src=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a picture");
        assert!(page.contains(&format!("]({file})")) && gallery.join(file).exists(), "{file}");
        let counts: Vec<usize> =
            verdict.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect();
        let [agree, rows] = counts[..] else { panic!("`{verdict}` has no counts") };
        assert_eq!(verdict.chars().next(), Some(if agree == rows { '✓' } else { '≈' }), "{verdict}");
        let is_row =
            |l: &&str| l.starts_with("| ") && !l.starts_with("| quantity |") && !l.starts_with("| ---");
        let on_page = page.lines().filter(is_row).count();
        assert_eq!(rows, on_page, "{}", exhibit.name);
        assert!(agree <= on_page);
        sections.extend(["\n#", page.trim_end(), "\n"]);
    }
    assert!(
        index.ends_with(&sections),
        "the sections are the pages; run `covary reproduce all -o docs/gallery`"
    );
}

//! One page of many exhibits, as HTML that needs nothing else and as Markdown.

use crate::{Record, Verdict};
use covary_report::Style;
use std::fmt::Write;

/// An exhibit that was not made, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

const TITLE: &str = "Published figures and tables, reproduced";
const LEDE: &str =
    "Figures and tables of papers with our numbers next to theirs. A row that differs says why.";
const STYLE: &str = "\
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--muted:#57606a;--line:#d8dee4;--soft:#f6f8fa;--good:#0b6e4f;--bad:#a04000}\
@media(prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--muted:#9aa4af;--line:#30363d;--soft:#161b22;--good:#4fc79b;--bad:#f0883e}}\
*{box-sizing:border-box}body{margin:0 auto;max-width:1140px;padding:32px 20px 80px;background:var(--paper);color:var(--ink);\
font:16px/1.5 system-ui,sans-serif}h1{font-size:28px;margin:0 0 4px}h2{font-size:20px;margin:56px 0 4px}\
p{margin:8px 0}.muted{color:var(--muted)}code{background:var(--soft);padding:1px 5px;border-radius:4px;font-size:.9em}\
figure{margin:16px 0;overflow-x:auto}figure svg{max-width:100%;height:auto;border:1px solid var(--line);border-radius:6px}\
table{border-collapse:collapse;margin:12px 0;width:100%;font-variant-numeric:tabular-nums}caption{text-align:left;font-weight:600;padding:6px 0}\
th,td{text-align:left;padding:5px 10px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--muted);font-weight:500}\
.scroll{overflow-x:auto}p,li,td:not(.number){overflow-wrap:anywhere}td.number{white-space:nowrap}td:first-child{min-width:9em}\
.cards{list-style:none;padding:0;display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,230px),1fr));gap:14px}\
.cards li{border:1px solid var(--line);border-radius:8px;padding:8px 10px;display:flex;flex-direction:column;gap:4px;font-size:14px}\
.cards svg{display:block;width:100%;height:130px;background:#fff;border-radius:4px;margin-bottom:6px}\
.agrees{color:var(--good)}.differs{color:var(--bad)}a{color:inherit}ul{padding-left:20px}";

/// A page that needs nothing else: figures are inside, nothing is fetched.
pub fn html(records: &[Record], left_out: &[LeftOut]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{TITLE}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body id=\"top\">\n<h1>{TITLE}</h1>\n<p class=\"muted\">{LEDE}</p>\n"
    );
    let mut put = |text: &str| out.push_str(text);
    put("<ul class=\"cards\">\n");
    for r in records {
        let (name, title, source) = (escape(&r.name), escape(&r.title), escape(&r.source));
        let verdict = r.verdict();
        let class = if verdict.sign == '✗' { "differs" } else { "agrees" };
        // The figure itself, once more and small: it is in the page only once.
        let small = r.charts.first().map_or(String::new(), |chart| {
            let (w, h) = chart.draw(&Style::default()).size();
            format!(
                "<svg viewBox=\"0 0 {w} {h}\" preserveAspectRatio=\"xMidYMin slice\" aria-hidden=\"true\"><use href=\"#figure-{name}\" width=\"{w}\" height=\"{h}\"/></svg>"
            )
        });
        put(&format!(
            "<li><a href=\"#{name}\">{small}<strong>{title}</strong></a><span class=\"muted\">{source}</span>\
             <span class=\"{class}\">{} {}</span></li>\n",
            verdict.sign,
            escape(&verdict.words)
        ));
    }
    put("</ul>\n");
    if !left_out.is_empty() {
        put("<p>Left out:</p>\n<ul>\n");
        for l in left_out {
            put(&format!("<li><code>{}</code>: {}</li>\n", escape(&l.name), escape(&l.why)));
        }
        put("</ul>\n");
    }
    for r in records {
        put(&format!(
            "<section id=\"{}\">\n<h2>{}</h2>\n<p class=\"muted\">{}. Made by <code>{}</code>, seed {}.</p>\n",
            escape(&r.name),
            escape(&r.title),
            escape(&r.source),
            escape(&r.command),
            r.seed
        ));
        for (k, chart) in r.charts.iter().enumerate() {
            let mut drawn = chart.draw(&Style::default()).to_string();
            if k == 0 {
                drawn = drawn.replacen("<svg ", &format!("<svg id=\"figure-{}\" ", escape(&r.name)), 1);
            }
            put(&format!("<figure>{drawn}</figure>\n"));
        }
        for table in &r.tables {
            let grid = table.grid();
            put(&format!("<div class=\"scroll\"><table>\n<caption>{}</caption>\n", prose(&grid.caption)));
            let heads: Vec<String> = grid.header.iter().map(|c| format!("<th>{}</th>", prose(c))).collect();
            put(&format!("<tr>{}</tr>\n", heads.concat()));
            for (row, cells) in table.rows.iter().zip(&grid.rows) {
                let (last, first) = cells.split_last().expect("a quantity and a difference");
                // Numbers of many columns are not broken: the table is scrolled.
                let number = if row.parts.is_empty() { "" } else { " class=\"number\"" };
                let cell = |(k, c): (usize, &String)| {
                    format!("<td{}>{}</td>", if k == 0 { "" } else { number }, prose(c))
                };
                let shown: String = first.iter().enumerate().map(cell).collect();
                let class = if row.agrees { "agrees" } else { "differs" };
                put(&format!("<tr>{shown}<td class=\"{class}\">{}</td></tr>\n", prose(last)));
            }
            put("</table></div>\n");
            let whys = table.whys();
            if !whys.is_empty() {
                put("<ul>\n");
                for why in &whys {
                    put(&format!("<li>{}</li>\n", prose(why)));
                }
                put("</ul>\n");
            }
        }
        for note in &r.notes {
            put(&format!("<p>{}</p>\n", prose(note)));
        }
        put("<p><a href=\"#top\">to all exhibits</a></p>\n</section>\n");
    }
    put("</body>\n</html>\n");
    out
}

/// The same as Markdown, figures beside it as files.
pub fn markdown(records: &[Record], left_out: &[LeftOut]) -> String {
    let mut out = format!("# {TITLE}\n\n{LEDE}\n`covary reproduce all -o DIR` made this page.\n\n");
    out.push_str("| | exhibit | what it shows | verdict |\n| --- | --- | --- | --- |\n");
    for r in records {
        let Verdict { sign, words } = r.verdict();
        let small = r.figure_names().first().map_or(String::new(), |file| {
            format!("<a href=\"{}.md\"><img src=\"{file}\" width=\"150\" alt=\"\"></a>", r.name)
        });
        writeln!(out, "| {small} | [{}]({}.md) | {} | {sign} {words} |", r.source, r.name, r.title)
            .expect("memory");
    }
    for l in left_out {
        writeln!(out, "\nLeft out: `{}`: {}", l.name, l.why).expect("memory");
    }
    for r in records {
        writeln!(out, "\n{}", r.markdown(2).trim_end()).expect("memory");
    }
    out
}

/// Text whose words between backticks are code.
fn prose(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    pieces
        .map(|(k, part)| if k % 2 == 1 { format!("<code>{}</code>", escape(part)) } else { escape(part) })
        .collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

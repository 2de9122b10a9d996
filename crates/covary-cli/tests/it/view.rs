//! `covary view`: what it serves, whom it refuses, and when it ends.

use super::{covary, folder_with_examples, run_in, succeed};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A server that is killed if a test fails.
struct Served {
    child: Child,
    host: String,
    token: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Served {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = covary()
            .current_dir(folder)
            .args(["view", "--no-open", "--quiet"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut address).expect("an address");
        let rest = address.trim().strip_prefix("http://").expect("an address").to_owned();
        let (host, token) = rest.split_once('/').expect("a token");
        Self { child, host: host.to_owned(), token: token.trim_end_matches('/').to_owned() }
    }

    /// What a request (of the version that is answered in one piece) of this method, path and headers is answered.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut stream = TcpStream::connect(&self.host).expect("it listens");
        let mut text = format!("{method} {path} HTTP/1.0\r\nContent-Length: 0\r\n");
        let own = (!headers.iter().any(|(name, _)| *name == "Host")).then_some(("Host", self.host.as_str()));
        for (name, value) in headers.iter().copied().chain(own) {
            text.extend([name, ": ", value, "\r\n"]);
        }
        stream.write_all((text + "\r\n").as_bytes()).expect("it reads");
        let mut said = Vec::new();
        stream.read_to_end(&mut said).expect("it answers");
        let said = String::from_utf8(said).expect("text");
        let (head, body) = said.split_once("\r\n\r\n").expect("a head");
        let status = head.split_whitespace().nth(1).and_then(|s| s.parse().ok()).expect("a status");
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn get(&self, what: &str) -> Answer {
        self.ask("GET", &format!("/{}/{what}", self.token), &[])
    }

    fn compute(&self, values: &str) -> Value {
        let found = self.get(&format!("compute?{values}"));
        assert_eq!(found.status, 200, "{}", found.body);
        serde_json::from_str(&found.body).expect("JSON")
    }
}

#[test]
fn a_page_is_what_report_writes_of_the_same_options() {
    let folder = folder_with_examples();
    let root = folder.path();
    let served = Served::start(root, &["examples/wine_gaps.csv"]);
    let offered: Value = serde_json::from_str(&served.get("offered").body).expect("JSON");
    assert_eq!(offered["now"]["model"], "ppca");
    assert!(offered["sample"].is_null(), "{offered}");
    let asked = [
        ("model=ppca", ""),
        ("model=fa&components=2&rotation=varimax", " --model fa --components 2 --rotation varimax"),
        (
            "model=ppca&components=4&x=3&y=1&color=none",
            " --model ppca --components 4 --color none --axes 3,1",
        ),
    ];
    for (values, flags) in asked {
        let found = served.compute(values);
        let page = served.get(found["page"].as_str().unwrap_or_else(|| panic!("{values}: {found}"))).body;
        let call = format!("report examples/wine_gaps.csv{flags} -o report.html");
        assert!(page.contains(&format!("covary {call}")), "{values}: the page has the call that makes it");
        succeed(root, &call);
        assert!(page == std::fs::read_to_string(root.join("report.html")).expect("written"), "{values}");
    }
    for (values, why) in [
        ("model=pcca", "there is no model `pcca`"),
        ("model=ppca&rotation=sideways", "there is no rotation `sideways`"),
        ("components=0", "give a whole number from 1, not `0`"),
        ("components=50", "50 components are too many"),
        ("x=2&y=2", "both axes are component 2"),
        ("model=ppca&components=2&x=1&y=3", "--axes 1,3 asks for more than the 2 components"),
        ("color=nothing", "nothing"),
    ] {
        let found = served.compute(values);
        assert!(found["error"].as_str().is_some_and(|said| said.contains(why)), "{values}: {found}");
    }
    assert_eq!(served.get("page/99").status, 404);
    assert_eq!(served.get("../../etc/passwd").status, 404);
}

#[test]
fn who_does_not_have_the_address_is_refused() {
    let folder = folder_with_examples();
    let served = Served::start(folder.path(), &["examples/wine.csv"]);
    let own = format!("/{}/", served.token);
    let with = |headers: &[(&str, &str)]| served.ask("GET", &own, headers).status;
    assert_eq!(with(&[]), 200);
    let wrong = format!("/{}/", served.token.chars().rev().collect::<String>());
    for path in ["/", "/offered", "//", &wrong, &own[..own.len() - 2], "/compute?model=ppca"] {
        let refused = served.ask("GET", path, &[]);
        assert_eq!(refused.status, 403, "{path}");
        assert!(!refused.body.contains(&served.token), "{path}");
    }
    let port = served.host.rsplit_once(':').expect("a port").1;
    for host in
        ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", &format!("evil.example:{port}")]
    {
        assert_eq!(with(&[("Host", host)]), 403, "{host}");
    }
    assert_eq!(with(&[("Host", &format!("localhost:{port}"))]), 200);
    for origin in ["http://evil.example", "null", "http://127.0.0.1", "https://127.0.0.1:1"] {
        assert_eq!(with(&[("Origin", origin)]), 403, "{origin}");
    }
    assert_eq!(with(&[("Origin", &format!("http://127.0.0.1:{port}"))]), 200);
    for (site, status) in [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)] {
        assert_eq!(with(&[("Sec-Fetch-Site", site)]), status, "{site}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        assert_eq!(served.ask(method, &own, &[]).status, 405, "{method}");
    }
    assert_eq!(served.ask("GET", &format!("{own}closed"), &[]).status, 405);
    assert_eq!(served.ask("GET", &format!("{own}?{}", "a".repeat(9000)), &[]).status, 414);
    let head = served.get("").head.to_lowercase();
    for name in
        ["content-security-policy: default-src 'none'", "cache-control: no-store", "nosniff", "no-referrer"]
    {
        assert!(head.contains(name), "{name} in {head}");
    }
    assert!(!head.contains("access-control-allow"), "{head}");
}

#[test]
fn hostile_names_and_cells_stay_text() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>";
    let mut table = format!("\"{evil}\",b,c,\"kind{evil}\"\n");
    for i in 0..40 {
        let (x, noise) = (f64::from(i % 7), f64::from(i * 37 % 11) / 10.0);
        let _ = writeln!(table, "{x},{},{},\"{evil}{}\"", x + noise, 2.0 * x - noise, i % 2);
    }
    std::fs::write(folder.path().join("t.csv"), table).expect("writable");
    let served = Served::start(folder.path(), &["t.csv"]);
    let offered = served.get("offered");
    assert!(offered.head.contains("application/json"), "{}", offered.head);
    let found = served.compute("model=ppca&components=1");
    let page = served.get(found["page"].as_str().unwrap_or_else(|| panic!("{found}"))).body;
    assert!(!page.contains("<script>alert") && !page.contains("<img src=x"), "cells are text");
}

#[test]
fn a_large_table_is_sampled_and_that_is_said() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut table = "a,b,c,site\n".to_owned();
    for i in 0..6000 {
        let x = f64::from(i * 7919 % 101);
        let gap = if i % 9 == 0 { String::new() } else { (x + f64::from(i % 13)).to_string() };
        let site = ["north", "south"][i as usize % 2];
        let _ = writeln!(table, "{x},{gap},{},{site}", 3.0 * x + f64::from(i % 17));
    }
    std::fs::write(folder.path().join("t.csv"), table).expect("writable");
    let served = Served::start(folder.path(), &["t.csv"]);
    let offered: Value = serde_json::from_str(&served.get("offered").body).expect("JSON");
    let sample = offered["sample"].as_str().expect("said");
    assert!(sample.contains("5000 rows spread evenly over the 6000 rows"), "{sample}");
    let found = served.compute("model=ppca&components=1&color=site");
    let page = served.get(found["page"].as_str().unwrap_or_else(|| panic!("{found}"))).body;
    assert!(page.contains("5000") || page.contains("5\u{202f}000"), "the page counts what it has seen");
}

#[test]
fn it_ends_when_the_page_is_closed() {
    let folder = folder_with_examples();
    let mut served = Served::start(folder.path(), &["examples/wine.csv"]);
    assert_eq!(served.get("").status, 200);
    assert_eq!(served.ask("POST", &format!("/{}/closed", served.token), &[]).status, 200);
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = served.child.try_wait().expect("a child") {
            break status;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it ends");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(status.success());
    let absent = run_in(folder.path(), &["view", "--no-open", "no.csv"], b"");
    assert_eq!(absent.code, Some(1), "{}", absent.err);
    assert!(absent.err.contains("no.csv") && absent.out.is_empty(), "{}", absent.err);
}

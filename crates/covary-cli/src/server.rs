//! A server of one page to one person: it listens on 127.0.0.1 only, and answers none but who has its address from us.
//!
//! The address has 128 random bits. A page of another site does not know them; and were they known, its requests carry
//! another `Host` (DNS rebinding), another `Origin` or `Sec-Fetch-Site: cross-site` (forged requests) and are refused. Nothing is
//! stored, and no answer may be loaded by, framed in or sent to another origin.

use std::io;
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response};

/// Longest address that is read.
const LONGEST: usize = 8192;

/// A server, and the secret part of its address.
pub(crate) struct Server {
    http: tiny_http::Server,
    port: u16,
    token: String,
}

/// What a page asked for, under the secret part of the address.
pub(crate) struct Asked {
    /// What follows the token, such as `compute`.
    pub(crate) what: String,
    /// Names and values behind the question mark.
    pub(crate) values: Vec<(String, String)>,
    request: Request,
}

/// What is sent, and what a browser may do with it.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) policy: &'static str,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// Text that only this page may read.
    pub(crate) fn of(kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, kind, policy: "default-src 'none'; frame-ancestors 'none'", body: body.into() }
    }

    pub(crate) fn refused(status: u16, why: &str) -> Self {
        Self { status, ..Self::of("text/plain; charset=utf-8", why) }
    }
}

impl Server {
    /// On a free port of this machine, or on this one.
    pub(crate) fn new(port: u16) -> io::Result<Self> {
        let http = tiny_http::Server::http(("127.0.0.1", port)).map_err(io::Error::other)?;
        let port = http.server_addr().to_ip().map_or(port, |address| address.port());
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        let token = format!("{:032x}", u128::from_be_bytes(secret));
        Ok(Self { http, port, token })
    }

    /// Where the page is.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// The next that may be answered, if one comes in this time.
    pub(crate) fn next(&self, wait: Duration) -> io::Result<Option<Asked>> {
        let Some(request) = self.http.recv_timeout(wait)? else { return Ok(None) };
        match self.judge(&request) {
            Ok((what, values)) => Ok(Some(Asked { what, values, request })),
            Err(refusal) => {
                // Who was refused may be gone.
                let _ = request.respond(response(refusal));
                Ok(None)
            }
        }
    }

    /// What a request asks for, or why it is refused.
    fn judge(&self, request: &Request) -> Result<(String, Vec<(String, String)>), Reply> {
        let forbidden = |why: &str| Err(Reply::refused(403, why));
        let hosts = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        if !header(request, "Host").is_some_and(|host| hosts.iter().any(|own| *own == host)) {
            return forbidden("this server answers to 127.0.0.1 and localhost only");
        }
        let is_own = |origin: &str| hosts.iter().any(|host| origin == format!("http://{host}"));
        if header(request, "Origin").is_some_and(|origin| !is_own(origin)) {
            return forbidden("a page of another origin asked");
        }
        if header(request, "Sec-Fetch-Site").is_some_and(|site| !matches!(site, "same-origin" | "none")) {
            return forbidden("a page of another site asked");
        }
        if request.url().len() > LONGEST {
            return Err(Reply::refused(414, "the address is too long"));
        }
        let (path, query) = request.url().split_once('?').unwrap_or((request.url(), ""));
        let (token, what) = path.trim_start_matches('/').split_once('/').unwrap_or(("", ""));
        if !same(token, &self.token) {
            return forbidden("the address is not the one that `covary view` printed");
        }
        let expected = if what == "closed" { Method::Post } else { Method::Get };
        if *request.method() != expected {
            return Err(Reply::refused(405, "asked in a way that this does not answer to"));
        }
        let values = form_urlencoded::parse(query.as_bytes());
        Ok((what.to_owned(), values.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()))
    }
}

impl Asked {
    /// The value of this name, unless it is empty.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let found = self.values.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// Sends the answer; a page that is gone does not matter.
    pub(crate) fn answer(self, reply: Reply) {
        let _ = self.request.respond(response(reply));
    }
}

fn response(reply: Reply) -> Response<io::Cursor<Vec<u8>>> {
    let headers = [
        ("Content-Type", reply.kind),
        ("Content-Security-Policy", reply.policy),
        ("Cache-Control", "no-store"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Content-Type-Options", "nosniff"),
    ];
    headers.into_iter().fold(
        Response::from_data(reply.body).with_status_code(reply.status),
        |made, (name, value)| {
            made.with_header(Header::from_bytes(name, value).expect("names and values are ASCII"))
        },
    )
}

fn header<'a>(request: &'a Request, name: &'static str) -> Option<&'a str> {
    request.headers().iter().find(|header| header.field.equiv(name)).map(|header| header.value.as_str())
}

/// Whether two texts are the same, in a time that does not tell where they differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |unlike, (a, b)| unlike | (a ^ b)) == 0
}

//! `explore`: serves the explorer's page on this machine and opens a browser.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use clap::Args;
use serde_json::json;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response, Server};

/// The page as it was when this program was built; empty if it was not.
const EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/explorer.rs"));

/// How often it is looked whether the user wants an end.
const LOOK: Duration = Duration::from_millis(100);

/// Show MetaRoCE in a simulated network, packet by packet, in the browser
#[derive(Args, Debug)]
pub struct ExploreArgs {
    /// TCP port; 0: any that is free
    #[arg(long, value_name = "PORT", default_value_t = 8791)]
    port: u16,
    /// Address to serve on
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
    /// Serve the page from this folder [default: what is in this program]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Runs the command, until it is interrupted.
///
/// # Errors
/// If there is no page, or the port cannot be had.
pub fn run(arguments: &ExploreArgs, json: bool, interrupt: &Interrupt) -> Result<(), Failure> {
    let page = Page::new(arguments.dir.clone())?;
    let wanted = SocketAddr::new(arguments.address, arguments.port);
    let server = Server::http(wanted)
        .map_err(|error| Failure::System(format!("cannot serve on {wanted}: {error}")))?;
    let address = server.server_addr().to_ip().unwrap_or(wanted);
    let url = format!("http://{address}/");
    if json {
        output::json_line(&json!({ "url": url }));
    } else {
        output::line(format!("The explorer is at {url} (Ctrl-C ends it)"));
    }
    if !arguments.no_open && !open_browser(&url) {
        eprintln!("metaroce: no browser could be opened; the address is {url}");
    }
    while !interrupt.requested() {
        match server.recv_timeout(LOOK) {
            Ok(Some(request)) => page.answer(request),
            Ok(None) => {}
            Err(error) => return Err(Failure::System(format!("cannot serve: {error}"))),
        }
    }
    Ok(())
}

/// Where the page comes from.
struct Page {
    folder: Option<PathBuf>,
}

impl Page {
    fn new(folder: Option<PathBuf>) -> Result<Self, Failure> {
        let page = Self { folder };
        if page.file("index.html").is_some() {
            return Ok(page);
        }
        Err(match &page.folder {
            Some(folder) => Failure::Usage(format!(
                "there is no index.html in {}: build the page with `cargo xtask explorer`, which puts it into wasm-viz/web/dist",
                folder.display()
            )),
            None => Failure::System(
                "this program was built without the explorer's page: run `cargo xtask explorer`, then build it again, or give the folder with --dir"
                    .to_owned(),
            ),
        })
    }

    /// A file of the page. Names are those of the page: none leads out of the folder.
    fn file(&self, name: &str) -> Option<Cow<'static, [u8]>> {
        let Some(folder) = &self.folder else {
            let found = EMBEDDED.iter().find(|(file, _)| *file == name);
            return found.map(|(_, bytes)| Cow::Borrowed(*bytes));
        };
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if !Path::new(name).components().all(plain) {
            return None;
        }
        std::fs::read(folder.join(name)).ok().map(Cow::Owned)
    }

    fn answer(&self, request: Request) {
        let path = request.url().split(['?', '#']).next().unwrap_or_default();
        let name = match path.trim_start_matches('/') {
            "" => "index.html",
            name => name,
        }
        .to_owned();
        let is_read = matches!(request.method(), Method::Get | Method::Head);
        let brotli = request.headers().iter().any(|header| {
            header.field.equiv("Accept-Encoding")
                && header
                    .value
                    .as_str()
                    .split(',')
                    .any(|one| one.trim() == "br")
        });
        let small = brotli.then(|| self.file(&format!("{name}.br"))).flatten();
        let encoded = small.is_some();
        // Nobody may be waiting for it any more: that is no failure of ours.
        let _ = match small.or_else(|| self.file(&name)) {
            _ if !is_read => request.respond(Response::empty(405)),
            Some(bytes) => {
                let mut response = Response::from_data(bytes.into_owned())
                    .with_chunked_threshold(usize::MAX)
                    .with_header(header("Content-Type", media_type(&name)))
                    .with_header(header("Vary", "Accept-Encoding"))
                    .with_header(header("Cache-Control", "no-cache"))
                    .with_header(header("X-Content-Type-Options", "nosniff"));
                if encoded {
                    response.add_header(header("Content-Encoding", "br"));
                }
                request.respond(response)
            }
            None => request.respond(Response::from_string("not found").with_status_code(404)),
        };
    }
}

/// A header of ours; all are ASCII.
fn header(name: &'static str, value: &'static str) -> Header {
    Header {
        field: name.parse().expect("a header's name is ASCII"),
        value: value.parse().expect("a header's value is ASCII"),
    }
}

/// The media type of a file by its name.
fn media_type(name: &str) -> &'static str {
    match Path::new(name).extension().and_then(|text| text.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

/// Asks the system to show an address. Whether there was anybody to ask.
fn open_browser(url: &str) -> bool {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("cmd", &["/C", "start", ""])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(url).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}

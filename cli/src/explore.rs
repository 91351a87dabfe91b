//! `explore`: serves the explorer's page on this machine and opens a browser.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use axum::Router;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use clap::Args;
use serde_json::json;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime;

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
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::System(format!("cannot serve: {error}")))?;
    runtime.block_on(serve(arguments, page, json, interrupt))
}

/// Answers until the user wants an end.
async fn serve(
    arguments: &ExploreArgs,
    page: Page,
    json: bool,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let wanted = SocketAddr::new(arguments.address, arguments.port);
    let listener = TcpListener::bind(wanted).await;
    let listener =
        listener.map_err(|error| Failure::System(format!("cannot serve on {wanted}: {error}")))?;
    let url = format!("http://{}/", listener.local_addr().unwrap_or(wanted));
    if json {
        output::json_line(&json!({ "url": url }));
    } else {
        output::line(format!("The explorer is at {url} (Ctrl-C ends it)"));
    }
    if !arguments.no_open && !open_browser(&url) {
        eprintln!("metaroce: no browser could be opened; the address is {url}");
    }
    let page = Arc::new(page);
    let answer = move |method: Method, uri: Uri, headers: HeaderMap| {
        let page = Arc::clone(&page);
        async move { page.answer(&method, &uri, &headers) }
    };
    let server = axum::serve(listener, Router::new().fallback(answer));
    // Connections that browsers keep do not hold up the end.
    tokio::select! {
        ended = server.into_future() => {
            ended.map_err(|error| Failure::System(format!("cannot serve: {error}")))
        }
        () = until(interrupt) => Ok(()),
    }
}

async fn until(interrupt: &Interrupt) {
    while !interrupt.requested() {
        tokio::time::sleep(LOOK).await;
    }
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

    fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Response {
        if method != Method::GET && method != Method::HEAD {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        }
        let name = match uri.path().trim_start_matches('/') {
            "" => "index.html",
            name => name,
        };
        let accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
        let brotli = accepted
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|one| one.trim() == "br");
        let small = brotli.then(|| self.file(&format!("{name}.br"))).flatten();
        let is_small = small.is_some();
        let Some(bytes) = small.or_else(|| self.file(name)) else {
            return (StatusCode::NOT_FOUND, "not found").into_response();
        };
        let mut response = (
            [
                (header::CONTENT_TYPE, media_type(name)),
                (header::VARY, "Accept-Encoding"),
                (header::CACHE_CONTROL, "no-cache"),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ],
            bytes,
        )
            .into_response();
        if is_small {
            let encoding = HeaderValue::from_static("br");
            response
                .headers_mut()
                .insert(header::CONTENT_ENCODING, encoding);
        }
        response
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

//! `metaroce explore` as a browser meets it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn metaroce() -> Command {
    Command::new(env!("CARGO_BIN_EXE_metaroce"))
}

fn get(address: &str, path: &str, headers: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// Serves a folder, and where.
fn serve(folder: &Path) -> (Served, String) {
    let mut child = metaroce()
        .args(["--json", "explore", "--port", "0", "--no-open", "--dir"])
        .arg(folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let served = Served(child);
    let url = serde_json::from_str::<serde_json::Value>(&line).unwrap()["url"]
        .as_str()
        .unwrap()
        .to_owned();
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    (served, address.to_owned())
}

#[test]
fn a_folder_is_served_with_types_and_compressed_and_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page");
    std::fs::create_dir(&page).unwrap();
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    std::fs::write(page.join("index.html"), "<p>page").unwrap();
    std::fs::write(page.join("core.wasm"), b"\0asm").unwrap();
    std::fs::write(page.join("core.wasm.br"), b"small").unwrap();
    let (_served, address) = serve(&page);
    let address = address.as_str();
    let text = |path, headers| String::from_utf8_lossy(&get(address, path, headers)).into_owned();
    let index = text("/?x=1", "");
    assert!(
        index.starts_with("HTTP/1.1 200") && index.ends_with("<p>page"),
        "{index}"
    );
    assert!(
        index
            .to_lowercase()
            .contains("content-type: text/html; charset=utf-8")
    );
    let plain = text("/core.wasm", "");
    assert!(
        plain.contains("application/wasm") && !plain.to_lowercase().contains("content-encoding")
    );
    let small = text("/core.wasm", "Accept-Encoding: gzip, br\r\n");
    assert!(small.to_lowercase().contains("content-encoding: br") && small.ends_with("small"));
    for path in ["/../secret", "/none", "//etc/passwd"] {
        assert!(text(path, "").starts_with("HTTP/1.1 404"), "{path}");
    }
}

/// Browsers open several connections, keep them, and use them when they like.
#[test]
fn connections_that_are_kept_do_not_hold_up_others() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "<p>page").unwrap();
    let (_served, address) = serve(folder.path());
    for _ in 0..20 {
        let mut all: Vec<TcpStream> = (0..32)
            .map(|_| TcpStream::connect(&address).unwrap())
            .collect();
        for stream in &mut all {
            // Only so that a failure ends.
            stream
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).unwrap();
            assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        }
    }
}

#[test]
fn without_a_page_it_says_how_to_build_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = metaroce()
        .args(["explore", "--no-open", "--dir"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cargo xtask explorer"));
}

//! Two network namespaces with two planes between them, and processes in them.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// The server's UDP port, and the client's.
pub const PORT: u16 = 14_791;

/// How long to wait for what must happen. Nothing is judged by it: a test that runs into it fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Two namespaces, `here` (the client's) and `there` (the server's), joined by a veth pair per plane.
pub struct World {
    here: String,
    there: String,
    ipv6: bool,
}

/// One side of a world.
#[derive(Clone, Copy)]
pub enum Side {
    Here,
    There,
}

static WORLDS: AtomicU32 = AtomicU32::new(0);

impl World {
    /// Builds the namespaces; panics with what is missing if that is not possible.
    pub fn new(ipv6: bool) -> Self {
        require();
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let name = |side| format!("mr{}-{number}{side}", std::process::id());
        let world = Self {
            here: name('h'),
            there: name('t'),
            ipv6,
        };
        for (side, namespace) in [(Side::Here, &world.here), (Side::There, &world.there)] {
            run("ip", &["netns", "add", namespace]);
            world.exec(side, "ip", &["link", "set", "lo", "up"]);
        }
        for plane in 0..2 {
            let (one, two) = (device(plane), "peer0");
            run(
                "ip",
                &[
                    "-n",
                    &world.here,
                    "link",
                    "add",
                    &one,
                    "type",
                    "veth",
                    "peer",
                    "name",
                    two,
                    "netns",
                    &world.there,
                ],
            );
            run(
                "ip",
                &["-n", &world.there, "link", "set", two, "name", &one],
            );
            for side in [Side::Here, Side::There] {
                // Segments must be packets of their own for a filter to lose them one by one.
                world.exec(
                    side,
                    "ethtool",
                    &["-K", &one, "tso", "off", "gso", "off", "gro", "off"],
                );
                if ipv6 {
                    let keep = format!("echo 1 > /proc/sys/net/ipv6/conf/{one}/keep_addr_on_down");
                    world.exec(side, "sh", &["-c", &keep]);
                }
                let address = format!("{}/{}", world.ip(side, plane), if ipv6 { 64 } else { 24 });
                let mut add = vec!["addr", "add", &address, "dev", &one];
                if ipv6 {
                    add.push("nodad");
                }
                world.exec(side, "ip", &add);
                world.exec(side, "ip", &["link", "set", &one, "up"]);
            }
        }
        world
    }

    fn name(&self, side: Side) -> &str {
        match side {
            Side::Here => &self.here,
            Side::There => &self.there,
        }
    }

    fn ip(&self, side: Side, plane: usize) -> String {
        let host = match side {
            Side::Here => 1,
            Side::There => 2,
        };
        if self.ipv6 {
            format!("fd00:77:{plane}::{host}")
        } else {
            format!("10.77.{plane}.{host}")
        }
    }

    /// A side's address on a plane, with the port.
    pub fn address(&self, side: Side, plane: usize) -> String {
        let ip = self.ip(side, plane);
        if self.ipv6 {
            format!("[{ip}]:{PORT}")
        } else {
            format!("{ip}:{PORT}")
        }
    }

    /// Runs a tool in a side's namespace.
    pub fn exec(&self, side: Side, tool: &str, arguments: &[&str]) {
        let mut all = vec!["netns", "exec", self.name(side), tool];
        all.extend(arguments);
        run("ip", &all);
    }

    /// Loses `per_mille` of the protocol's packets that reach a side, on both sides.
    pub fn lose(&self, per_mille: u32) {
        if per_mille == 0 {
            return;
        }
        for side in [Side::Here, Side::There] {
            let rules = format!(
                "table inet lossy {{ chain input {{ type filter hook input priority 0; \
                 udp dport {PORT} numgen random mod 1000 < {per_mille} counter drop; }}; }}"
            );
            self.exec(side, "nft", &[&rules]);
        }
    }

    /// How many packets the rules of [`Self::lose`] dropped at a side.
    pub fn lost(&self, side: Side) -> u64 {
        let output = Command::new("ip")
            .args([
                "netns",
                "exec",
                self.name(side),
                "nft",
                "-j",
                "list",
                "table",
                "inet",
                "lossy",
            ])
            .output()
            .expect("ip netns exec nft");
        let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON of nft");
        let text = listed.to_string();
        let count = text
            .split("\"packets\":")
            .nth(1)
            .and_then(|rest| rest.split([',', '}']).next());
        count
            .and_then(|count| count.trim().parse().ok())
            .expect("a counter in nft's answer")
    }

    /// Marks one in `one_in` of the protocol's packets that reach a side with CE.
    pub fn mark(&self, side: Side, one_in: u32) {
        let family = if self.ipv6 { "ip6" } else { "ip" };
        for plane in 0..2 {
            let rules = format!(
                "table netdev marker{plane} {{ chain ingress {{ type filter hook ingress device {} priority 0; \
                 udp dport {PORT} numgen random mod {one_in} < 1 {family} ecn set ce; }}; }}",
                device(plane)
            );
            self.exec(side, "nft", &[&rules]);
        }
    }

    /// Takes a plane down, or brings it back.
    pub fn set_plane(&self, plane: usize, up: bool) {
        self.exec(
            Side::There,
            "ip",
            &[
                "link",
                "set",
                &device(plane),
                if up { "up" } else { "down" },
            ],
        );
    }

    /// Starts `metaroce` in a side's namespace.
    pub fn metaroce(&self, side: Side, arguments: &[&str]) -> Process {
        let child = Command::new("ip")
            .args([
                "netns",
                "exec",
                self.name(side),
                env!("CARGO_BIN_EXE_metaroce"),
            ])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ip netns exec metaroce");
        Process::new(child)
    }

    /// Starts a server on both planes and waits until it listens.
    pub fn serve(&self, window: &str) -> Process {
        let (one, two) = (self.address(Side::There, 0), self.address(Side::There, 1));
        let server = self.metaroce(
            Side::There,
            &[
                "serve", "--json", "--window", window, "--plane", &one, "--plane", &two,
            ],
        );
        assert_eq!(server.line()["event"], "listening");
        server
    }

    /// Arguments of `perf` that connect from here to there over both planes.
    pub fn perf(&self, kind: &str, more: &[&str]) -> Process {
        let (one, two) = (self.address(Side::There, 0), self.address(Side::There, 1));
        let (mine, other) = (self.address(Side::Here, 0), self.address(Side::Here, 1));
        let mut arguments = vec![
            "perf", kind, &one, &two, "--plane", &mine, "--plane", &other, "--json", "--events",
        ];
        arguments.extend(more);
        self.metaroce(Side::Here, &arguments)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for namespace in [&self.here, &self.there] {
            // In a failing test what went wrong first matters more.
            let _ = Command::new("ip")
                .args(["netns", "del", namespace])
                .status();
        }
    }
}

fn device(plane: usize) -> String {
    format!("plane{plane}")
}

fn run(tool: &str, arguments: &[&str]) {
    let output = Command::new(tool)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{tool}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{tool} {}: {said}",
        arguments.join(" ")
    );
}

/// Fails with everything that is missing.
fn require() {
    let mut missing = Vec::new();
    if !std::fs::read_to_string("/proc/self/status")
        .unwrap_or_default()
        .lines()
        .any(|line| line.starts_with("Uid:\t0\t"))
    {
        missing.push("root (network namespaces cannot be made without)".to_owned());
    }
    for (tool, package) in [
        ("ip", "iproute2"),
        ("nft", "nftables"),
        ("ethtool", "ethtool"),
    ] {
        let found = std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path)
                .chain(["/usr/sbin".into(), "/sbin".into()])
                .any(|dir| dir.join(tool).exists())
        });
        if !found {
            missing.push(format!("`{tool}` (Debian package {package})"));
        }
    }
    assert!(
        missing.is_empty(),
        "this test needs: {}",
        missing.join(", ")
    );
}

/// A process whose lines can be waited for.
pub struct Process {
    child: Child,
    stdout: mpsc::Receiver<String>,
    stderr: mpsc::Receiver<String>,
}

impl Process {
    fn new(mut child: Child) -> Self {
        let stdout = lines(child.stdout.take().expect("piped"));
        let stderr = lines(child.stderr.take().expect("piped"));
        Self {
            child,
            stdout,
            stderr,
        }
    }

    /// The next line of standard output, as JSON.
    pub fn line(&self) -> Value {
        let line = self
            .stdout
            .recv_timeout(PATIENCE)
            .expect("a line of output");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Waits for an event on standard error.
    pub fn event(&self, name: &str) -> Value {
        let mut seen = Vec::new();
        while let Ok(line) = self.stderr.recv_timeout(PATIENCE) {
            match serde_json::from_str::<Value>(&line) {
                Ok(event) if event["event"] == name => return event,
                _ => seen.push(line),
            }
        }
        seen.extend(self.stdout.try_iter());
        panic!("no event `{name}`, but: {}", seen.join("\n"));
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        run("sh", &["-c", &format!("kill -{name} {}", self.child.id())]);
    }

    /// Waits for the end: exit code and standard output as one JSON value.
    pub fn finish(mut self) -> (Option<i32>, Value) {
        let text: Vec<_> = self.stdout.iter().collect();
        let status = self.child.wait().expect("wait");
        let text = text.join("\n");
        let value = text
            .find("\n{\"error\"")
            .map_or(text.as_str(), |end| &text[..end]);
        let value = serde_json::from_str(value).unwrap_or_else(|error| {
            panic!(
                "{error}: {text}\n{}",
                self.stderr.iter().collect::<Vec<_>>().join("\n")
            )
        });
        (status.code(), value)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(source: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

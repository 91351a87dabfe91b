//! The C library, as its users have it: installed, compiled against, run.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::targets;
use crate::{elf, install_c, process, setup, workspace};

/// The profile of the host's library: with assertions and overflow checks, and shared with other steps.
const PROFILE: &str = "test-fast";

/// Warnings are errors.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// What docs/conversation.md says must come out.
const CONVERSATION: &str =
    "conversation: hash 0xdb529ab9fbab2b66, 964 datagrams, 52 lost, over at 3660192 ns";

/// The scenario whose hash everybody compares, with its seed and settings.
const SCENARIO: &str = "scenarios/collectives.toml";
const SEED: &str = "1";
const SETTINGS: [&str; 2] = ["workload.size_bytes=256KiB", "workload.repeat=1"];

pub fn run() -> Result<()> {
    let place = Place::new()?;
    // In one go: what they depend on is built once.
    let arguments = ["-p", "metaroce-c", "-p", "metaroce", "--locked", "--quiet"];
    let mut build = process::cargo(["build", "--profile", PROFILE]);
    process::run(build.args(arguments))?;
    install_c::install(&place.prefix, PROFILE)?;
    header(&place)?;
    exports(&place)?;
    consumers(&place)?;
    for build in [Build::Plain, Build::Sanitized] {
        programs(&place, build)?;
    }
    bare(&place)
}

/// Folders.
struct Place {
    prefix: PathBuf,
    work: PathBuf,
    source: PathBuf,
}

impl Place {
    /// An empty prefix, and a place for what is compiled.
    fn new() -> Result<Self> {
        let root = workspace::target_dir()?.join("bindings-c");
        if root.exists() {
            fs::remove_dir_all(&root).context("clearing the last run")?;
        }
        let work = root.join("work");
        fs::create_dir_all(&work).context("making a folder")?;
        Ok(Self {
            prefix: root.join("prefix"),
            work,
            source: workspace::root().join("bindings-c/tests"),
        })
    }

    fn library(&self) -> PathBuf {
        self.prefix.join("lib")
    }
}

/// Runs a program and shows what it printed.
fn show(command: &mut Command) -> Result<String> {
    println!("$ {}", process::shown(command));
    let said = process::output(command)?;
    print!("{said}");
    Ok(said)
}

/// The header alone, in each language.
fn header(place: &Place) -> Result<()> {
    let file = place.prefix.join("include/metaroce.h");
    for (compiler, language, standards) in [
        ("gcc", "c", ["-std=c99", "-std=c11", "-std=c17"]),
        ("g++", "c++", ["-std=c++11", "-std=c++17", "-std=c++20"]),
    ] {
        for standard in standards {
            let mut command = process::command(compiler);
            command.args(["-x", language, standard]).args(STRICT);
            process::run(command.arg("-fsyntax-only").arg(&file))?;
        }
    }
    Ok(())
}

/// The shared library has its name, and exports what the header declares and nothing else.
fn exports(place: &Place) -> Result<()> {
    let shared = place.library().join("libmetaroce.so");
    let dynamic = process::output(process::command("readelf").arg("-d").arg(&shared))?;
    let soname = format!("[libmetaroce.so.{}]", install_c::ABI);
    ensure!(dynamic.contains(&soname), "no SONAME {soname}");
    let symbols = process::output(
        process::command("nm")
            .args(["-D", "--defined-only", "--format=posix"])
            .arg(&shared),
    )?;
    let mut exported: Vec<&str> = symbols
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    exported.sort_unstable();
    let header = fs::read_to_string(place.prefix.join("include/metaroce.h"))?;
    let mut declared: Vec<&str> = header
        .lines()
        .filter(|line| !line.starts_with([' ', '/', '#']))
        .filter_map(|line| line.split_once('('))
        .filter_map(|(before, _)| before.rsplit([' ', '*']).next())
        .collect();
    declared.sort_unstable();
    if let Some(missing) = declared.iter().find(|name| !exported.contains(name)) {
        bail!("{missing} is declared and not exported");
    }
    if let Some(extra) = exported.iter().find(|name| !declared.contains(name)) {
        bail!("{extra} is exported and not declared");
    }
    println!(
        "{} functions, all of them declared and exported",
        declared.len()
    );
    Ok(())
}

/// Programs that find the installed library by pkg-config and by CMake.
fn consumers(place: &Place) -> Result<()> {
    let source = place.source.join("consumer");
    let library = place.library();
    let pkg_config = |arguments: &[&str]| -> Result<Vec<String>> {
        let mut command = process::command("pkg-config");
        command
            .args(arguments)
            .arg("metaroce")
            .env("PKG_CONFIG_PATH", library.join("pkgconfig"));
        let text = process::output(&mut command)?;
        Ok(text.split_whitespace().map(str::to_owned).collect())
    };
    let program = place.work.join("pkg-config");
    let mut compile = process::command("gcc");
    compile.args(["-std=c99", "-o"]).args([&program]);
    compile.args(STRICT).arg(source.join("consumer.c"));
    process::run(compile.args(pkg_config(&["--cflags", "--libs"])?))?;
    show(process::command(&program).env("LD_LIBRARY_PATH", &library))?;

    // The same with the static library, which the linker takes if it is named by its file.
    let program = place.work.join("pkg-config-static");
    let mut compile = process::command("gcc");
    compile.args(["-std=c99", "-o"]).args([&program]);
    compile.args(STRICT).arg(source.join("consumer.c"));
    let flags = pkg_config(&["--static", "--cflags", "--libs"])?;
    compile.args(
        flags
            .iter()
            .map(|flag| flag.replace("-lmetaroce", "-l:libmetaroce.a")),
    );
    process::run(&mut compile)?;
    show(&mut process::command(&program))?;

    let build = place.work.join("cmake");
    let mut configure = process::command("cmake");
    configure.arg("-S").arg(&source).arg("-B").arg(&build);
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", place.prefix.display()));
    process::run(configure.arg("-Wno-dev"))?;
    process::run(process::command("cmake").arg("--build").arg(&build))?;
    for program in ["shared", "static", "cpp"] {
        show(&mut process::command(build.join(program)))?;
    }
    Ok(())
}

/// How the tests in C are built and run.
#[derive(Clone, Copy, PartialEq)]
enum Build {
    /// With the shared library, then under valgrind.
    Plain,
    /// With the static library and AddressSanitizer, UndefinedBehaviorSanitizer and the leak checker.
    Sanitized,
}

/// Compiles a test.
fn compile(place: &Place, build: Build, name: &str, others: &[&str]) -> Result<PathBuf> {
    let folder = place.work.join(match build {
        Build::Plain => "plain",
        Build::Sanitized => "sanitized",
    });
    fs::create_dir_all(&folder)?;
    let program = folder.join(name);
    let mut command = process::command("gcc");
    command.args(["-std=c99", "-O1", "-g", "-o"]).arg(&program);
    command.args(STRICT).arg("-I").arg(&place.source);
    command.arg("-I").arg(place.prefix.join("include"));
    command.arg(place.source.join(format!("{name}.c")));
    command.args(others.iter().map(|source| place.source.join(source)));
    match build {
        Build::Plain => {
            let library = place.library();
            command.arg("-L").arg(&library).arg("-lmetaroce");
            command.arg(format!("-Wl,-rpath,{}", library.display()));
        }
        Build::Sanitized => {
            command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
            command.arg(place.library().join("libmetaroce.a"));
            command.args(["-lpthread", "-lm", "-ldl"]);
        }
    }
    process::run(&mut command)?;
    Ok(program)
}

/// A command that runs a test: alone, or under valgrind. One that hangs is ended after as long as those in Rust are (.config/nextest.toml).
fn start(program: &Path, valgrind: bool) -> Command {
    let mut command = process::command("timeout");
    command.arg("600");
    if valgrind {
        let strict = ["--quiet", "--error-exitcode=99", "--leak-check=full"];
        command.arg("valgrind").args(strict);
        command.arg("--errors-for-leak-kinds=definite");
    }
    command.arg(program);
    command
}

/// What a test is made of beside its own source.
type Program = (&'static str, &'static [&'static str]);

/// Tests that need no operating system.
const ANYWHERE: [Program; 6] = [
    ("conversation", &["wire.c"]),
    ("codec", &["wire.c"]),
    ("not_ready", &["sides.c", "wire.c"]),
    ("planes", &["sides.c", "wire.c"]),
    ("refusals", &["sides.c", "wire.c"]),
    ("endings", &["sides.c", "wire.c"]),
];

/// Tests that do, and ask for nothing else.
const HOSTED: [Program; 4] = [
    ("pair", &["wire.c"]),
    ("misuse", &["no_threads.c"]),
    ("nic_loop", &["nics.c"]),
    ("nic_queues", &["nics.c"]),
];

/// The conversation must be ours. (QEMU may say something as well.)
fn check_said(name: &str, said: &str) -> Result<()> {
    ensure!(
        name != "conversation" || said.contains(CONVERSATION),
        "another conversation than docs/conversation.md's"
    );
    Ok(())
}

/// Every test in C.
fn programs(place: &Place, build: Build) -> Result<()> {
    let ways: &[bool] = if build == Build::Plain {
        &[false, true]
    } else {
        &[false]
    };
    for (name, others) in ANYWHERE.iter().chain(&HOSTED) {
        let program = compile(place, build, name, others)?;
        for valgrind in ways {
            let said = show(&mut start(&program, *valgrind))?;
            check_said(name, &said)?;
        }
    }
    let client = compile(place, build, "nic_client", &[])?;
    for valgrind in ways {
        with_server(&mut start(&client, *valgrind))?;
    }
    let sim = compile(place, build, "sim", &[])?;
    simulated(&mut start(&sim, false))
}

/// `metaroce serve` in a process of its own, and a client that is told its port.
fn with_server(client: &mut Command) -> Result<()> {
    let mut serve = process::command(command_line_program()?);
    serve.args(["serve", "--once", "--json", "--plane", "127.0.0.1:0"]);
    println!("$ {} &", process::shown(&serve));
    let mut server = serve
        .stdout(Stdio::piped())
        .spawn()
        .context("starting `metaroce serve`")?;
    let output = server.stdout.take();
    let result = talk(output, client);
    if result.is_err() {
        // It may be over already.
        let _ = server.kill();
    }
    let status = server.wait().context("waiting for the server")?;
    result?;
    ensure!(status.success(), "`metaroce serve` ended with {status}");
    Ok(())
}

/// Has the client talk to the server that writes this.
fn talk(output: Option<ChildStdout>, client: &mut Command) -> Result<()> {
    let mut lines = BufReader::new(output.context("no output")?).lines();
    let first = lines.next().context("it said nothing")??;
    let said: serde_json::Value = serde_json::from_str(&first)?;
    let address = said["addresses"][0].as_str().context("no address")?;
    let (_, port) = address.rsplit_once(':').context("no port")?;
    show(client.arg(port))?;
    // It ends when its client has, and says so.
    let rest: Vec<String> = lines.collect::<std::io::Result<_>>()?;
    ensure!(
        rest.iter().any(|line| line.contains(r#""event":"closed""#)),
        "the server did not see the client go: {rest:?}"
    );
    Ok(())
}

/// The command `metaroce`, built.
fn command_line_program() -> Result<PathBuf> {
    Ok(workspace::target_dir()?.join(PROFILE).join("metaroce"))
}

/// A scenario run from C comes to what the command says.
fn simulated(sim: &mut Command) -> Result<()> {
    let said = process::output(sim.args([SCENARIO, SEED]).args(SETTINGS))?;
    let (hash, json) = said.trim_end().split_once('\n').context("two lines")?;
    let mut command = process::command(command_line_program()?);
    command.args(["sim", SCENARIO, "--seed", SEED, "--json", "--quiet"]);
    for setting in SETTINGS {
        command.args(["--set", setting]);
    }
    let native: serde_json::Value = serde_json::from_str(&process::output(&mut command)?)?;
    ensure!(
        native["hash"].as_str() == Some(hash),
        "{SCENARIO} from C: hash {hash}, from the command: {}",
        native["hash"]
    );
    let from_c: serde_json::Value = serde_json::from_str(json)?;
    ensure!(from_c == native, "the summaries differ");
    println!("{SCENARIO}, seed {SEED}, {SETTINGS:?}: hash {hash} from C and from the command");
    Ok(())
}

/// A processor without an operating system, in QEMU.
struct Board {
    target: &'static str,
    compiler: &'static str,
    machine: &'static [&'static str],
    /// Where code and data go.
    memory: [(&'static str, &'static str); 4],
    qemu: &'static [&'static str],
}

const BOARDS: [Board; 2] = [
    Board {
        target: setup::TARGETS[0],
        compiler: "riscv64-unknown-elf-gcc",
        machine: &["-march=rv32imac", "-mabi=ilp32"],
        memory: [
            ("__flash", "0x80000000"),
            ("__flash_size", "0x400000"),
            ("__ram", "0x80400000"),
            ("__ram_size", "0x400000"),
        ],
        qemu: &["qemu-system-riscv32", "-M", "virt", "-bios", "none"],
    },
    Board {
        target: setup::TARGETS[1],
        compiler: "arm-none-eabi-gcc",
        machine: &[
            "-mcpu=cortex-m4",
            "-mthumb",
            "-mfloat-abi=hard",
            "-mfpu=fpv4-sp-d16",
        ],
        memory: [
            ("__flash", "0"),
            ("__flash_size", "0x400000"),
            ("__ram", "0x20000000"),
            ("__ram_size", "0x400000"),
        ],
        qemu: &["qemu-system-arm", "-M", "mps2-an386"],
    },
];

/// On bare metal: no panic, no allocator of Rust's, and the same conversation.
fn bare(place: &Place) -> Result<()> {
    for board in &BOARDS {
        let mut build = setup::build_command(board.target);
        build.args(["-p", "metaroce-c", "--no-default-features"]);
        build.args(["--profile", "bare"]);
        build.args(["--locked", "--quiet"]);
        let folder = targets::target_dir()?;
        process::run(build.env("CARGO_TARGET_DIR", &folder))?;
        let library = folder.join(board.target).join("bare/libmetaroce.a");
        for (name, others) in ANYWHERE {
            let program = place.work.join(format!("{name}-{}", board.target));
            let mut compile = process::command(board.compiler);
            compile.args(board.machine);
            compile.args(["--specs=picolibc.specs", "--oslib=semihost"]);
            // Ends QEMU with what `main` returns.
            compile.args(["--crt0=hosted", "-std=c99", "-O2", "-g"]);
            compile.args(STRICT).args(["-ffunction-sections", "-o"]);
            compile.arg(&program).arg("-I").arg(&place.source);
            compile.arg("-I").arg(place.prefix.join("include"));
            compile.arg(place.source.join(format!("{name}.c")));
            compile.args(others.iter().map(|source| place.source.join(source)));
            compile.arg(&library);
            // The linker keeps relocations so that the check can name who refers to what.
            compile.args(["-Wl,--gc-sections,--emit-relocs", "-Wl,-z,noexecstack"]);
            compile.arg("-Wl,--defsym=__stack_size=0x10000");
            for (symbol, value) in board.memory {
                compile.arg(format!("-Wl,--defsym={symbol}={value}"));
            }
            process::run(&mut compile)?;
            let firmware = elf::Firmware::read(&program)?;
            println!("{name} for {}: {}", board.target, firmware.sizes()?);
            if let Some(found) = firmware.forbidden()?.last() {
                bail!("{name} for {}: {found}", board.target);
            }
            let [qemu, arguments @ ..] = board.qemu else {
                bail!("no QEMU is named for {}", board.target);
            };
            let mut run = process::command(qemu);
            run.args(arguments).args(["-nographic", "-no-reboot"]);
            run.args(["-semihosting-config", "enable=on,target=native"]);
            let said = process::output_of_both(run.arg("-kernel").arg(&program))?;
            print!("{said}");
            check_said(name, &said).with_context(|| board.target.to_owned())?;
        }
    }
    Ok(())
}

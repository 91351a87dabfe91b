/** The page: what is simulated, what is drawn, and what the visitor does. */

import "./style.css";
import * as address from "./address";
import { Chart } from "./chart";
import { ConnectionView } from "./connection";
import { installProbe } from "./probe";
import { FabricView, type Hit } from "./fabric";
import { linkName } from "./layout";
import { MemoryView } from "./memory";
import type { Frame, Opening, Plan, View } from "./records";
import { PRESETS } from "./scenarios";
import { Simulator } from "./simulator";
import { beginTheme, theme, toggleTheme } from "./theme";

function element<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

/** Simulated picoseconds in a second, by the position of the slider. */
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].map((us) => us * 1e6);
const MICROSECOND = 1e6;
/** What changes slowly is drawn every so many frames. */
const DETAILS_EVERY = 6;

const simulator = new Simulator();
const state = address.read(location.hash);
let plans: Plan[] = [];
let fabrics: FabricView[] = [];
let frame: Frame | null = null;
let playing = false;
/** A request is on its way: others wait for it. */
let busy: Promise<unknown> = Promise.resolve();
let asked = false;
let frames = 0;
let lastTime = 0;
let generation = 0;
let shownError = "";

const chart = new Chart(element<HTMLCanvasElement>("chart"));
const connection = new ConnectionView(element("vectors"), element("facts"));
const memory = new MemoryView(element("memories"));
const probe = installProbe({
  simulator,
  frame: () => frame,
  opening,
  playing: () => playing,
  idle: () => busy,
  fabrics: () => fabrics,
});

function opening(): Opening {
  const preset = PRESETS[state.scenario];
  if (!preset) throw new Error(`no scenario ${state.scenario}`);
  const paths = state.paths ? `\ntransport.paths=${state.paths}` : "";
  const overrides = [`${preset.set}${paths}`];
  if (state.compare) overrides.push(`${preset.set}\ntransport.kind=rocev2`);
  return {
    name: `${state.scenario}.toml`,
    toml: preset.toml,
    overrides,
    seed: state.seed,
    interventions: state.interventions,
    ps: state.ps,
    events: state.events,
  };
}

function view(details: boolean): View {
  const [from = 0, to = 0] = state.pair.split("-").map(Number);
  return { from, to, details };
}

function fail(error: unknown): void {
  shownError = error instanceof Error ? error.message : String(error);
  element("error").textContent = shownError;
  element("error").hidden = false;
  setPlaying(false);
}

/** Does one thing after the other. */
function queue<T>(work: () => Promise<T>): Promise<T | undefined> {
  const next = busy.then(work).catch((error: unknown) => {
    fail(error);
    return undefined;
  });
  busy = next;
  return next;
}

async function open(): Promise<void> {
  await queue(async () => {
    generation += 1;
    element("error").hidden = true;
    const result = await simulator.ask({ kind: "open", opening: opening(), view: view(true) });
    plans = result.plans;
    const pair = state.pair;
    build();
    // Which connection is shown may be known only now.
    show(pair === state.pair ? result.frame : await simulator.ask({ kind: "frame", ps: 0, view: view(true) }));
    writeAddress();
  });
}

/** The page for new plans. */
function build(): void {
  fabrics = plans.map((plan, side) => new FabricView(side, plan, onHit));
  element("fabrics").replaceChildren(...fabrics.map((fabric) => fabric.root));
  element("fabrics").dataset["sides"] = String(plans.length);
  const plan = plans[0];
  if (!plan) return;
  const pairs = Array.from({ length: plan.pairs.length / 2 }, (_, i) => `${plan.pairs[2 * i]}-${plan.pairs[2 * i + 1]}`);
  if (!pairs.includes(state.pair)) state.pair = pairs[0] ?? "";
  fill("pair", pairs.map((pair) => [pair, `h${pair.replace("-", " → h")}`]), state.pair);
  const links = Array.from({ length: plan.links.length / 8 }, (_, link) => [String(link), linkName(plan, link)] as [string, string]);
  fill("link", [["", "choose …"], ...links], "");
  showPair();
}

function fill(id: string, options: [string, string][], chosen: string): void {
  const select = element<HTMLSelectElement>(id);
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

function showPair(): void {
  const { from, to } = view(false);
  fabrics.forEach((fabric) => (fabric.pair = [from, to]));
  element<HTMLSelectElement>("pair").value = state.pair;
}

function show(next: Frame): void {
  frame = next;
  state.ps = next.ps;
  state.events = next.events;
  state.interventions = next.interventions;
  next.sides.forEach((side, index) => fabrics[index]?.update(side));
  if (next.over) setPlaying(false);
  const clock = `${(next.ps / MICROSECOND).toFixed(3)} µs`;
  element("clock").textContent = clock;
  connection.draw(next.sides.map((side, i) => ({ plan: plan(i), words: side.connection, from: view(false).from })));
  fabrics.forEach((fabric) => fabric.draw());
  if (next.sides.every((side) => side.transfers && side.goodput)) showDetails(next);
  probe.drawn();
}

function plan(side: number): Plan {
  const found = plans[side];
  if (!found) throw new Error(`no side ${side}`);
  return found;
}

function showDetails(next: Frame): void {
  const name = (i: number): string => fabrics[i]?.name() ?? "";
  const rival = (i: number): boolean => plan(i).transport !== "metaroce";
  const empty = new Float32Array();
  chart.draw(next.sides.map((side, i) => ({ name: name(i), rival: rival(i), spans: side.goodput ?? empty })), 0);
  memory.draw(
    next.sides.map((side, i) => ({ name: name(i), rival: rival(i), transfers: side.transfers ?? new Uint32Array() })),
  );
  const rows: [string, number][] = [
    ["Data packets", 1], ["Sent again", 2], ["Lost on the way", 7], ["Arrived marked", 6], ["Out of order, dropped", 4],
    ["Timeouts, probes", 5], ["Packet hops", 10],
  ];
  const head = `<tr><th></th>${next.sides.map((_, i) => `<th scope="col">${name(i)}</th>`).join("")}</tr>`;
  const body = rows.map(([text, index]) => {
    const cells = next.sides.map((side) => `<td>${(side.counters[index] ?? 0).toLocaleString("en")}</td>`).join("");
    return `<tr><th scope="row">${text}</th>${cells}</tr>`;
  });
  element("counters").innerHTML = head + body.join("");
  element("progress").textContent = next.over ? "finished" : `${next.events.toLocaleString("en")} events`;
  showInterventions(next.interventions);
}

function showInterventions(all: string[]): void {
  const texts = all.flatMap((text, side) =>
    text.split(".").filter((one) => one !== "" && (side === 0 || one.includes("-drop-"))).map((one) => describe(one, side)),
  );
  const html = texts.length ? texts.map((text) => `<li>${text}</li>`).join("") : `<li class="none">none yet</li>`;
  const list = element("interventions");
  if (list.innerHTML !== html) list.innerHTML = html;
}

function describe(text: string, side: number): string {
  const [ps = "0", , verb = "", which = "0", much = "0"] = text.split("-");
  const link = linkName(plan(0), Number(which));
  const what = {
    cut: `cut ${link}`,
    repair: `repaired ${link}`,
    slow: `${link} at ${Number(much) / 1000} Gb/s`,
    lose: `${link} loses ${Number(much) / 10} %`,
    drop: `dropped a packet${plans.length > 1 ? ` of ${fabrics[side]?.name()}` : ""}`,
  }[verb];
  return `<b>${(Number(ps) / MICROSECOND).toFixed(2)} µs</b> ${what ?? verb}`;
}

// ---- time

function setPlaying(on: boolean): void {
  if (on && frame?.over) on = false;
  const stopped = playing && !on;
  playing = on;
  // Behind the frame that is on its way; what is drawn every few frames may be some behind.
  if (stopped) void refresh().then(writeAddress);
  const button = element("play");
  button.textContent = on ? "Pause" : "Play";
  button.setAttribute("aria-pressed", String(on));
  lastTime = 0;
}

function tick(time: number): void {
  requestAnimationFrame(tick);
  probe.tick(time);
  if (!playing || asked) {
    // What moves on its own: losses that fade, what is under the pointer.
    if (!playing) fabrics.forEach((fabric) => fabric.draw());
    return;
  }
  const passed = lastTime ? Math.min(50, time - lastTime) : 16;
  lastTime = time;
  const ps = (passed / 1000) * (SPEEDS[state.speed] ?? MICROSECOND);
  frames += 1;
  asked = true;
  const asking = generation;
  void queue(async () => {
    const next = await simulator.ask({ kind: "frame", ps, view: view(frames % DETAILS_EVERY === 0) });
    if (asking === generation) show(next);
  }).finally(() => {
    asked = false;
  });
}

const refresh = (): Promise<void | undefined> =>
  queue(async () => show(await simulator.ask({ kind: "frame", ps: 0, view: view(true) })));

function step(): void {
  setPlaying(false);
  void queue(async () => {
    show(await simulator.ask({ kind: "step", view: view(true) }));
    writeAddress();
  });
}

function goTo(ps: number): void {
  setPlaying(false);
  void queue(async () => {
    fabrics.forEach((fabric) => fabric.jump());
    show(await simulator.ask({ kind: "seek", ps: Math.max(0, Math.round(ps)), events: 0, view: view(true) }));
    writeAddress();
  });
}

/** A microsecond on or back from where it is once all that was asked before is done. */
function move(ps: number): void {
  setPlaying(false);
  void queue(async () => {
    if (ps < 0) fabrics.forEach((fabric) => fabric.jump());
    const to = Math.max(0, (frame?.ps ?? 0) + ps);
    show(await simulator.ask({ kind: "seek", ps: to, events: 0, view: view(true) }));
    writeAddress();
  });
}

function act(side: number, text: string): void {
  void queue(async () => {
    show(await simulator.ask({ kind: "act", side, text, view: view(true) }));
    writeAddress();
  });
}

function writeAddress(): void {
  history.replaceState(null, "", address.write(state));
}

// ---- what the pointer does

function onHit(side: number, hit: Hit, x: number, y: number): void {
  if (hit.kind === "packet") act(side, `drop-${hit.id}`);
  else if (hit.kind === "link") openMenu(hit.link, x, y);
  else {
    const plan = plans[0];
    if (!plan) return;
    for (let at = 0; at < plan.pairs.length; at += 2) {
      const pair = `${plan.pairs[at]}-${plan.pairs[at + 1]}`;
      if (plan.pairs[at] === hit.host && pair !== state.pair) return choosePair(pair);
    }
  }
}

function choosePair(pair: string): void {
  state.pair = pair;
  showPair();
  writeAddress();
  if (!playing) void refresh();
}

function openMenu(link: number, x: number, y: number): void {
  const menu = element("menu");
  const plan = plans[0];
  const side = frame?.sides[0];
  const fabric = fabrics[0];
  if (!plan || !side || !fabric) return;
  const now = fabric.linkState(side, link);
  const choices: [string, string][] = [
    ["Cut it", `cut-${link}`],
    ["Slow: 10 Gb/s", `slow-${link}-10000`],
    ["Lossy: 2 %", `lose-${link}-20`],
    ["Lossy: 20 %", `lose-${link}-200`],
    ["Repair it", `repair-${link}`],
  ];
  const title = document.createElement("p");
  title.textContent = `${linkName(plan, link)} · ${now}`;
  const buttons = choices.map(([text, action]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("role", "menuitem");
    button.dataset["action"] = action;
    button.textContent = text;
    button.disabled = (action.startsWith("repair") && now === "sound") || (action.startsWith("cut") && now === "cut");
    button.addEventListener("click", () => {
      closeMenu();
      act(0, action);
    });
    return button;
  });
  menu.replaceChildren(title, ...buttons);
  menu.hidden = false;
  menu.style.left = `${Math.min(x + 8, innerWidth - menu.offsetWidth - 8)}px`;
  menu.style.top = `${Math.min(y + 8, innerHeight - menu.offsetHeight - 8)}px`;
  buttons.find((button) => !button.disabled)?.focus();
}

function closeMenu(): void {
  element("menu").hidden = true;
  element<HTMLSelectElement>("link").value = "";
}

// ---- controls

function writeSpeed(): void {
  element<HTMLInputElement>("speed").value = String(state.speed);
  element("speed-text").textContent = `${(SPEEDS[state.speed] ?? 0) / MICROSECOND} µs/s`;
}

function changeSpeed(by: number): void {
  state.speed = Math.max(0, Math.min(SPEEDS.length - 1, state.speed + by));
  writeSpeed();
  if (!playing) writeAddress();
}

/** Another run: from its beginning, nothing done to it. */
function restart(change: () => void): void {
  setPlaying(false);
  change();
  Object.assign(state, { ps: 0, events: 0, interventions: ["", ""] });
  void open();
}

/** The same run with another side or without. */
function setCompare(on: boolean): void {
  setPlaying(false);
  void busy.then(() => {
    state.compare = on;
    element<HTMLInputElement>("compare").checked = on;
    // What was done to links is done on the other side at the same times; packets are another matter.
    const links = (state.interventions[0] ?? "").split(".").filter((one) => one && !one.includes("-drop-"));
    state.interventions[1] = on ? links.map(anyEvent).join(".") : "";
    return open();
  });
}

/** The intervention at its time, after as many events as that takes on another side. */
function anyEvent(text: string): string {
  const words = text.split("-");
  words[1] = "0";
  return words.join("-");
}

function writeControls(): void {
  element<HTMLSelectElement>("scenario").value = state.scenario;
  element<HTMLInputElement>("seed").value = String(state.seed);
  element<HTMLInputElement>("compare").checked = state.compare;
  const toml = PRESETS[state.scenario]?.toml ?? "";
  element<HTMLInputElement>("paths").value = String(state.paths || (/^paths = (\d+)/m.exec(toml)?.[1] ?? 8));
  writeSpeed();
}

function writeTheme(): void {
  element("theme").textContent = theme() === "dark" ? "Light" : "Dark";
  if (frame) void refresh();
}

function number(id: string, least: number, most: number): number | null {
  const input = element<HTMLInputElement>(id);
  const value = input.valueAsNumber;
  const good = Number.isInteger(value) && value >= least && value <= most;
  input.setAttribute("aria-invalid", String(!good));
  return good ? value : null;
}

function listen(): void {
  const on = (id: string, kind: string, does: () => void): void => element(id).addEventListener(kind, does);
  on("play", "click", () => setPlaying(!playing));
  on("step", "click", step);
  on("micro", "click", () => move(MICROSECOND));
  on("restart", "click", () => goTo(0));
  on("speed", "input", () => changeSpeed(element<HTMLInputElement>("speed").valueAsNumber - state.speed));
  on("scenario", "change", () =>
    restart(() => {
      Object.assign(state, { scenario: element<HTMLSelectElement>("scenario").value, paths: 0, pair: "" });
      writeControls();
    }),
  );
  on("seed", "change", () => {
    const seed = number("seed", 0, 2 ** 32 - 1);
    if (seed !== null) restart(() => (state.seed = seed));
  });
  on("paths", "change", () => {
    const paths = number("paths", 1, 64);
    if (paths !== null) restart(() => (state.paths = paths));
  });
  on("compare", "change", () => setCompare(element<HTMLInputElement>("compare").checked));
  on("pair", "change", () => choosePair(element<HTMLSelectElement>("pair").value));
  on("link", "change", () => {
    const link = Number(element<HTMLSelectElement>("link").value);
    const place = fabrics[0]?.middle(link);
    if (place) openMenu(link, place.x, place.y);
  });
  on("theme", "click", () => {
    toggleTheme();
    writeTheme();
  });
  on("help", "click", () => element<HTMLDialogElement>("help-text").showModal());
  document.addEventListener("pointerdown", (event) => {
    if (!element("menu").contains(event.target as Node)) closeMenu();
  });
  document.addEventListener("keydown", onKey);
  addEventListener("resize", () => void refresh());
  addEventListener("hashchange", () => {
    setPlaying(false);
    Object.assign(state, address.read(location.hash));
    writeControls();
    void open();
  });
}

function onKey(event: KeyboardEvent): void {
  if (event.key === "Escape" && !element("menu").hidden) {
    closeMenu();
    element("link").focus();
    return;
  }
  const target = event.target as HTMLElement;
  const types = target.matches("input:not([type=range]):not([type=checkbox]), select, dialog *");
  if (types || event.ctrlKey || event.metaKey || event.altKey) return;
  const menu = element("menu");
  if (menu.contains(target)) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const buttons = [...menu.querySelectorAll<HTMLButtonElement>("button:enabled")];
    const by = event.key === "ArrowDown" ? 1 : buttons.length - 1;
    buttons[(buttons.indexOf(target as HTMLButtonElement) + by) % buttons.length]?.focus();
    event.preventDefault();
    return;
  }
  if (target.matches("input[type=range]") && event.key.startsWith("Arrow")) return;
  if (target.matches("button") && (event.key === " " || event.key === "Enter")) return;
  const keys: Record<string, () => void> = {
    " ": () => setPlaying(!playing),
    ".": step,
    ArrowRight: () => move(MICROSECOND),
    ArrowLeft: () => move(-MICROSECOND),
    Home: () => goTo(0),
    "+": () => changeSpeed(1),
    "=": () => changeSpeed(1),
    "-": () => changeSpeed(-1),
    c: () => setCompare(!state.compare),
    d: () => element("theme").click(),
    l: () => element("link").focus(),
    "?": () => element("help").click(),
  };
  const does = keys[event.key];
  if (!does) return;
  event.preventDefault();
  does();
}

beginTheme(writeTheme);
fill("scenario", Object.entries(PRESETS).map(([key, preset]) => [key, preset.title]), state.scenario);
writeControls();
writeTheme();
listen();
void open().then(() => {
  probe.ready();
  requestAnimationFrame(tick);
});

/** Colours: those of the page from its style sheet, those of paths in a wheel. */

export interface Palette {
  ground: string;
  panel: string;
  text: string;
  faint: string;
  line: string;
  node: string;
  edge: string;
  accent: string;
  rival: string;
  marked: string;
  lost: string;
  slow: string;
  lossy: string;
  cell: string;
  dark: boolean;
}

const NAMES = [
  "ground", "panel", "text", "faint", "line", "node", "edge", "accent", "rival", "marked", "lost", "slow", "lossy", "cell",
] as const;

let palette: Palette | null = null;
const wheel = new Map<string, string>();

export function colours(): Palette {
  if (palette) return palette;
  const style = getComputedStyle(document.documentElement);
  const read = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  palette = { ...(read as unknown as Palette), dark: document.documentElement.dataset["theme"] === "dark" };
  return palette;
}

/** The first eight are far apart; after them the wheel goes on by the golden angle. */
const HUES = [250, 30, 150, 320, 85, 200, 0, 285];

export function pathColour(path: number, strength: "full" | "pale" = "full"): string {
  const { dark } = colours();
  const key = `${path}${strength}${dark}`;
  const known = wheel.get(key);
  if (known) return known;
  const hue = HUES[path] ?? (path * 137.508) % 360;
  const [light, chroma] = dark ? [0.74, 0.15] : [0.58, 0.17];
  const colour =
    strength === "full" ? `oklch(${light} ${chroma} ${hue})` : `oklch(${dark ? 0.4 : 0.84} ${chroma * 0.45} ${hue})`;
  wheel.set(key, colour);
  return colour;
}

type Choice = "light" | "dark";

export function theme(): Choice {
  return document.documentElement.dataset["theme"] === "dark" ? "dark" : "light";
}

export function setTheme(choice: Choice): void {
  document.documentElement.dataset["theme"] = choice;
  palette = null;
}

/** What the visitor chose before, else what the system prefers, now and when that changes. */
export function beginTheme(changed: () => void): void {
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  const kept = localStorage.getItem("theme");
  const begin = kept === "light" || kept === "dark" ? kept : prefers.matches ? "dark" : "light";
  setTheme(begin);
  prefers.addEventListener("change", () => {
    if (localStorage.getItem("theme")) return;
    setTheme(prefers.matches ? "dark" : "light");
    changed();
  });
}

export function toggleTheme(): void {
  const next = theme() === "dark" ? "light" : "dark";
  localStorage.setItem("theme", next);
  setTheme(next);
}

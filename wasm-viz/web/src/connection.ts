/** One connection: its window, its hint, and for each path the 256 bits of its sequence numbers. */

import { type Sheet, fit, sheet } from "./canvas";
import { FONT } from "./fabric";
import { CONNECTION, PATH, STATES, type Plan } from "./records";
import { colours, pathColour } from "./theme";

const ROW = 34;
const MOST_ROWS = 64;
const COLUMNS = 64;

export interface Shown {
  plan: Plan;
  words: Uint32Array;
  from: number;
}

/** The vectors of all sides, one below the other. */
export class ConnectionView {
  private readonly sheets: { title: HTMLElement; sheet: Sheet }[] = [];

  constructor(
    private readonly root: HTMLElement,
    private readonly facts: HTMLElement,
  ) {}

  draw(shown: Shown[]): void {
    while (this.sheets.length < shown.length) {
      const title = document.createElement("h3");
      const canvas = document.createElement("canvas");
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", "Vectors of the paths");
      this.root.append(title, canvas);
      this.sheets.push({ title, sheet: sheet(canvas) });
    }
    while (this.sheets.length > shown.length) {
      const last = this.sheets.pop();
      last?.title.remove();
      last?.sheet.canvas.remove();
    }
    shown.forEach((one, index) => {
      const place = this.sheets[index];
      if (place) drawVectors(place.sheet, place.title, one);
    });
    this.writeFacts(shown);
  }

  private writeFacts(shown: Shown[]): void {
    const lines = shown.flatMap(({ plan, words }) => {
      if (words.length === 0) return [["", "no connection"]];
      const [window = 0, outstanding = 0, hint = 0, rate = 0, rtt = 0] = words;
      const facts: [string, string][] = [];
      if (plan.transport === "metaroce") {
        facts.push(["Window", `${(window / 65536).toFixed(1)} pkt`]);
        facts.push(["In flight", `${outstanding} pkt`]);
        facts.push(["Receiver's hint", hint ? `${(hint / 1000).toFixed(1)} Gb/s` : "none"]);
        facts.push(["Least round trip", rtt ? `${(rtt / 1000).toFixed(2)} µs` : "–"]);
      } else {
        facts.push(["RoCEv2 in flight", `${outstanding} pkt`]);
        facts.push(["RoCEv2 rate", rate ? `${(rate / 1000).toFixed(1)} Gb/s` : "line"]);
      }
      return facts;
    });
    const html = lines.map(([name, value]) => `<div><dt>${name}</dt><dd>${value}</dd></div>`).join("");
    if (this.facts.innerHTML !== html) this.facts.innerHTML = html;
  }
}

/** The cell of a sequence number: where it is in the ring of 256. */
function drawVectors({ canvas, context, ...size }: Sheet, title: HTMLElement, { plan, words, from }: Shown): void {
  const paths = Math.min(MOST_ROWS, words[CONNECTION - 1] ?? 0);
  const own = plan.transport === "metaroce";
  const text = own ? `Paths of MetaRoCE` : `Queue pair of RoCEv2`;
  if (title.textContent !== text) title.textContent = text;
  const wanted = `${Math.max(1, paths) * ROW}px`;
  if (canvas.style.height !== wanted) canvas.style.height = wanted;
  const here: Sheet = { canvas, context, ...size };
  fit(here);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const look = colours();
  context.fillStyle = look.panel;
  context.fillRect(0, 0, width, height);
  const left = 92;
  const cell = (width - left) / COLUMNS;
  context.textBaseline = "middle";
  for (let path = 0; path < paths; path += 1) {
    const at = CONNECTION + path * PATH;
    const [state = 0, , weight = 0, inflight = 0, rtt = 0, , , , next = 0, cumulative = 0] = words.subarray(at, at + PATH);
    const y = path * ROW;
    const colour = pathColour(own ? path : from % 16);
    const pale = pathColour(own ? path : from % 16, "pale");
    context.fillStyle = colour;
    context.fillRect(0, y + 5, 4, ROW - 10);
    context.fillStyle = look.text;
    context.font = `600 11px ${FONT}`;
    context.textAlign = "left";
    context.fillText(own ? `${path}` : "QP", 10, y + 10);
    context.fillStyle = state === 1 ? look.faint : look.lost;
    context.font = `10px ${FONT}`;
    context.fillText(state === 1 ? (rtt ? `${(rtt / 1000).toFixed(1)} µs` : "–") : (STATES[state] ?? ""), 30, y + 10);
    context.fillStyle = look.faint;
    context.fillText(own ? `${inflight} / ${(weight / 65536).toFixed(1)}` : `${inflight} flying`, 10, y + 21);
    for (let psn = 0; psn < 256; psn += 1) {
      // The cell's number nearest to what is expected, within half a ring behind and ahead.
      const ahead = (psn - (cumulative & 255) + 256) & 255;
      const [x, row] = [left + (psn % COLUMNS) * cell, y + 3 + Math.floor(psn / COLUMNS) * 7];
      const sent = ahead < ((next - cumulative) | 0);
      const bit = ((words[at + 10 + (ahead >> 5)] ?? 0) >>> (ahead & 31)) & 1;
      let fill = look.cell;
      if (bit) fill = colour;
      else if (sent) fill = "";
      else if (cumulative > 0 && ((256 - ahead) & 255 || 256) <= Math.min(cumulative, 255)) fill = pale;
      if (fill) {
        context.fillStyle = fill;
        context.fillRect(x, row, Math.max(1, cell - 0.9), 5.8);
      } else {
        context.strokeStyle = ahead === 0 ? look.lost : colour;
        context.lineWidth = 0.8;
        context.strokeRect(x + 0.5, row + 0.5, Math.max(1, cell - 1.9), 4.8);
      }
    }
  }
}

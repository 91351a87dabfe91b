/** The receivers' memory: each message a row, each part of it a cell that fills. */

import { type Sheet, fit, sheet } from "./canvas";
import { FONT } from "./fabric";
import { CELLS, TRANSFER } from "./records";
import { colours } from "./theme";

const ROW = 14;
const MOST_ROWS = 40;

export interface Filling {
  name: string;
  rival: boolean;
  transfers: Uint32Array;
}

export class MemoryView {
  private readonly sheets: { title: HTMLElement; sheet: Sheet }[] = [];

  constructor(private readonly root: HTMLElement) {}

  draw(all: Filling[]): void {
    while (this.sheets.length < all.length) {
      const block = document.createElement("div");
      const title = document.createElement("h3");
      const canvas = document.createElement("canvas");
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", "Memory filling");
      block.append(title, canvas);
      this.root.append(block);
      this.sheets.push({ title, sheet: sheet(canvas) });
    }
    while (this.sheets.length > all.length) this.sheets.pop()?.title.parentElement?.remove();
    all.forEach((filling, index) => {
      const place = this.sheets[index];
      if (place) draw(place.sheet, place.title, filling);
    });
  }
}

/** Those under way first, then those that are done, the newest first. */
function order(transfers: Uint32Array): number[] {
  const rows = Array.from({ length: transfers.length / TRANSFER }, (_, index) => index * TRANSFER);
  if (rows.length <= MOST_ROWS) return rows;
  const open = rows.filter((at) => transfers[at + 4] !== transfers[at + 3]);
  const done = rows.filter((at) => transfers[at + 4] === transfers[at + 3]).reverse();
  return [...open, ...done].slice(0, MOST_ROWS);
}

function draw(sheet: Sheet, title: HTMLElement, { name, rival, transfers }: Filling): void {
  const rows = order(transfers);
  if (title.textContent !== name) title.textContent = name;
  const wanted = `${Math.max(1, rows.length) * ROW}px`;
  if (sheet.canvas.style.height !== wanted) sheet.canvas.style.height = wanted;
  fit(sheet);
  const { context, width, height } = sheet;
  const look = colours();
  context.fillStyle = look.panel;
  context.fillRect(0, 0, width, height);
  context.font = `10px ${FONT}`;
  context.textBaseline = "middle";
  const [left, right] = [62, 34];
  const cell = (width - left - right) / CELLS;
  rows.forEach((at, row) => {
    const [, from = 0, to = 0, bytes = 0, placed = 0] = transfers.subarray(at, at + TRANSFER);
    const y = row * ROW;
    context.fillStyle = look.faint;
    context.textAlign = "left";
    context.fillText(`h${from} → h${to}`, 0, y + ROW / 2);
    context.textAlign = "right";
    context.fillText(`${Math.floor((100 * placed) / Math.max(bytes, 1))} %`, width, y + ROW / 2);
    context.fillStyle = look.cell;
    context.fillRect(left, y + 2, width - left - right, ROW - 4);
    context.fillStyle = rival ? look.rival : look.accent;
    for (let part = 0; part < CELLS; part += 1) {
      const full = ((transfers[at + 5 + (part >> 2)] ?? 0) >>> ((part & 3) * 8)) & 255;
      if (full === 0) continue;
      const tall = ((ROW - 4) * full) / 255;
      context.fillRect(left + part * cell, y + ROW - 2 - tall, cell + 0.3, tall);
    }
  });
}

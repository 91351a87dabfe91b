/** Goodput over time, a line for each side. */

import { type Sheet, fit, sheet } from "./canvas";
import { FONT } from "./fabric";
import { colours } from "./theme";

export interface Curve {
  name: string;
  rival: boolean;
  /** The length of a span in ns, then Gbit/s in each. */
  spans: Float32Array;
}

export class Chart {
  private readonly sheet: Sheet;

  constructor(canvas: HTMLCanvasElement) {
    this.sheet = sheet(canvas);
  }

  draw(curves: Curve[], most: number): void {
    fit(this.sheet);
    const { context, width, height } = this.sheet;
    const look = colours();
    const [left, right, top, bottom] = [40, 12, 22, 22];
    const [across, down] = [width - left - right, height - top - bottom];
    context.fillStyle = look.panel;
    context.fillRect(0, 0, width, height);
    const end = Math.max(10, ...curves.map(({ spans }) => ((spans[0] ?? 0) * (spans.length - 1)) / 1000));
    const highest = Math.max(most, 1, ...curves.map(({ spans }) => spans.subarray(1).reduce((a, b) => Math.max(a, b), 0)));
    const [stepX, stepY] = [nice(end / 6), nice(highest / 3)];
    const x = (us: number): number => left + (across * us) / end;
    const y = (gbps: number): number => top + down - (down * gbps) / (highest * 1.04);
    context.font = `10px ${FONT}`;
    context.fillStyle = look.faint;
    context.strokeStyle = look.line;
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (let gbps = 0; gbps <= highest * 1.04; gbps += stepY) {
      context.globalAlpha = 0.6;
      context.beginPath();
      context.moveTo(left, Math.round(y(gbps)) + 0.5);
      context.lineTo(width - right, Math.round(y(gbps)) + 0.5);
      context.stroke();
      context.globalAlpha = 1;
      context.fillText(label(gbps), left - 6, y(gbps));
    }
    context.textBaseline = "top";
    context.textAlign = "center";
    for (let us = 0; us <= end + 1e-9; us += stepX) {
      if (x(us) < width - right - 14) context.fillText(`${label(us)} µs`, Math.max(x(us), left + 8), height - bottom + 6);
    }
    curves.forEach((curve, index) => {
      const colour = curve.rival ? look.rival : look.accent;
      const span = (curve.spans[0] ?? 0) / 1000;
      context.strokeStyle = colour;
      context.lineWidth = 1.8;
      context.lineJoin = "round";
      context.beginPath();
      curve.spans.subarray(1).forEach((gbps, at) => {
        if (at === 0) context.moveTo(x(0), y(gbps));
        context.lineTo(x((at + 0.5) * span), y(gbps));
      });
      context.stroke();
      context.fillStyle = colour;
      context.fillRect(left + index * 96, 9, 12, 3);
      context.fillStyle = look.text;
      context.textAlign = "left";
      context.textBaseline = "middle";
      context.fillText(curve.name, left + 17 + index * 96, 11);
    });
  }
}

function nice(step: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(step, 1e-9)));
  const lead = step / power;
  return (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power;
}

const label = (value: number): string => (value >= 10_000 ? `${Math.round(value / 1000)}k` : String(Math.round(value * 100) / 100));

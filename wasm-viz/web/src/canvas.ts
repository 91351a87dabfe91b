/** Canvases as large as their place, in the pixels of the screen. */

export interface Sheet {
  canvas: HTMLCanvasElement;
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
}

export function sheet(canvas: HTMLCanvasElement): Sheet {
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser draws on no canvas");
  return { canvas, context, width: 0, height: 0 };
}

/** Fits it to its place; true if its size changed. */
export function fit(sheet: Sheet): boolean {
  const { clientWidth: width, clientHeight: height } = sheet.canvas;
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (sheet.canvas.width === across && sheet.canvas.height === down && sheet.width === width) return false;
  sheet.canvas.width = across;
  sheet.canvas.height = down;
  sheet.width = width;
  sheet.height = height;
  sheet.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return true;
}

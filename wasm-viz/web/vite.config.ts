import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  worker: { format: "es" },
  // Scenarios of the repository are read from above this folder.
  server: { fs: { allow: ["../.."] } },
});

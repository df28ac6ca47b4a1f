"use strict";
// The comparison's own script: puts both pages into their frames, and moves their timelines together.
const frames = ["before", "after"].map((name) => document.getElementById(name));
for (const frame of frames) frame.srcdoc = JSON.parse(document.getElementById(frame.id + "-page").textContent);
addEventListener("message", (event) => {
  const from = frames.findIndex((frame) => frame.contentWindow === event.source);
  if (from < 0 || !event.data || event.data.kind !== "unsnarl-view") return;
  document.body.dataset[frames[from].id] = `${event.data.begin} ${event.data.end}`;
  if (document.getElementById("linked").checked) frames[1 - from].contentWindow.postMessage(event.data, "*");
});

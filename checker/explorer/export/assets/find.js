/** An exported page searches nothing; it says what it holds. This file has the place of the searches. */
import { byId, counted } from "./dom.js";
import { said } from "./language.js";

export class Finder {
  offer() {}

  /** @param {{cut: boolean, states: number}} view
   *  @param {import("./api.js").Job} job */
  showFor(view, job) {
    const liveness = job.properties.some(({ kind }) => ["recoverable", "eventually"].includes(kind));
    const command = `quorate explore ${job.file || "FILE"}`;
    const english = `All ${counted(view.states, "state")} of this scenario are in this file. `
      + (liveness ? "Whether a run never reaches its goal is not judged here. " : "")
      + `To search them, and to save a run: ${command}`;
    const chinese = `这个场景的全部 ${view.states.toLocaleString("en")} 个状态都在这个文件里。`
      + (liveness ? "这里不判断执行过程是否永远达不到目标。" : "")
      + `要搜索状态或保存执行过程：${command}`;
    byId("held").textContent = said(english, chinese);
    byId("cut").hidden = !view.cut;
  }
}

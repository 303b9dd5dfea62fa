// GET, POST, a request that the decider denies, and a host that is not on the list: one line each.
import https from "node:https";

const [base, other] = process.argv.slice(2);

function show(what, url, method = "GET", body = "") {
  return new Promise((resolve) => {
    const request = https.request(url, { method }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (piece) => (text += piece));
      answer.on("end", () => {
        console.log(what, answer.statusCode, answer.headers["x-deny-reason"] ?? "", text.trim());
        resolve();
      });
    });
    request.on("error", (error) => {
      console.log(what, "failed", error.message);
      resolve();
    });
    request.end(body);
  });
}

await show("get", base + "/hello");
await show("post", base + "/echo", "POST", "some data");
await show("denied", base + "/denied");
await show("list", other + "/hello");

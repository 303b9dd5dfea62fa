// GET, POST, a request that the decider denies, and a host that is not on the list: one line each.
const [base, other] = process.argv.slice(2);

async function show(what, url, options) {
  try {
    const answer = await fetch(url, options);
    console.log(what, answer.status, answer.headers.get("x-deny-reason") ?? "", (await answer.text()).trim());
  } catch (error) {
    let cause = error;
    while (cause.cause) cause = cause.cause;
    console.log(what, "failed", cause.message);
  }
}

await show("get", base + "/hello");
await show("post", base + "/echo", { method: "POST", body: "some data" });
await show("denied", base + "/denied");
await show("list", other + "/hello");

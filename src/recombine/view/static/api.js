// Requests to the server of this page.

export class Refused extends Error {
  constructor(message, fix, status) {
    super(message);
    this.fix = fix;
    this.status = status;
  }
}

async function answer(promise) {
  let response;
  try {
    response = await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The viewer does not answer.", "start it again: recombine view", 0);
  }
  const document = await response.json().catch(() => null);
  if (response.ok) return document;
  throw new Refused(document?.error || `The viewer answered ${response.status}.`, document?.fix, response.status);
}

function query(values) {
  const chosen = Object.entries(values || {}).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return chosen.length ? `?${new URLSearchParams(chosen)}` : "";
}

export function get(path, values, signal) {
  return answer(fetch(`/api/${path}${query(values)}`, { signal }));
}

export function post(path, body) {
  return answer(fetch(`/api/${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }));
}

export function upload(path, values, file) {
  return answer(fetch(`/api/${path}${query(values)}`, { method: "POST", body: file }));
}

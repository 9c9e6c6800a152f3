// A browser starts no worker for a page that was opened as a file. There the search runs in a hidden frame, whose
// window has what a worker has: postMessage to the page, and messages from it.
if (location.protocol === "file:") {
  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.inside.document.createElement("script");
      this.loaded = new Promise((done) => { script.onload = done; });
      script.src = new URL(url, location.href);
      this.inside.document.body.append(script);
    }
    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.inside.frameElement.remove();
    }
  }
  window.Worker = window.IFrameWorker = FrameWorker;
}

"use strict";
// Brings the live parts of a page up to date: asks for the same page again, and takes its elements marked data-live.
// It stops while the page is hidden, and leaves alone what somebody is working in.
(() => {
  const main = document.querySelector("main[data-live-s]");
  if (main) {
    const told = main.querySelector(".live");
    const status = main.querySelector("[data-live-status]");
    const button = main.querySelector("[data-live-pause]");
    const wait = Number(main.dataset.liveS) * 1000;
    let paused = false;
    let timer = 0;

    const say = (text) => {
      if (status.textContent !== text) status.textContent = text;
    };
    const busy = (part) => {
      const chosen = document.getSelection();
      return (
        part.contains(document.activeElement) ||
        (chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode))
      );
    };
    const renew = async () => {
      try {
        const url = new URL(location.href);
        url.searchParams.delete("said");
        const answer = await fetch(url, { headers: { Accept: "text/html" }, redirect: "error" });
        if (!answer.ok) throw new Error(answer.status);
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of main.querySelectorAll("[data-live]")) {
          const next = fresh.getElementById(part.id);
          if (next && !busy(part) && next.innerHTML !== part.innerHTML) part.replaceChildren(...next.childNodes);
        }
        say(told.dataset.running);
      } catch {
        say(told.dataset.away);
      }
    };
    const plan = () => {
      clearTimeout(timer);
      if (!paused && !document.hidden) {
        timer = setTimeout(async () => {
          await renew();
          plan();
        }, wait);
      }
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      paused = !paused;
      button.textContent = paused ? button.dataset.goOn : button.dataset.pause;
      say(paused ? told.dataset.paused : told.dataset.running);
      plan();
    });
    document.addEventListener("visibilitychange", plan);
    say(told.dataset.running);
    plan();
  }

  // A box in a table's head that checks all boxes of its table.
  for (const all of document.querySelectorAll("[data-check-all]")) {
    all.hidden = false;
    all.addEventListener("change", () => {
      for (const box of all.closest("table").querySelectorAll("tbody input[type=checkbox]")) box.checked = all.checked;
    });
  }
  // What cannot be taken back is asked for.
  for (const button of document.querySelectorAll("button[data-sure]")) {
    button.addEventListener("click", (event) => {
      if (!confirm(button.dataset.sure)) event.preventDefault();
    });
  }
})();

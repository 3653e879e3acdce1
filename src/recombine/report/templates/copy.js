"use strict";
// Selects a table and copies it. If the browser refuses, the selection can be copied by hand.
document.querySelectorAll("button[data-copy]").forEach(function (button) {
  const word = button.textContent;
  button.hidden = false;
  button.addEventListener("click", function () {
    const range = document.createRange();
    range.selectNode(document.getElementById(button.dataset.copy));
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    const done = document.execCommand("copy");
    button.textContent = done ? "Copied" : "Selected: copy it with your keyboard";
    window.setTimeout(function () { button.textContent = word; }, 2500);
  });
});

"use strict";
(function () {
  var figures = JSON.parse(document.getElementById("figures").textContent);
  var isTouched = window.matchMedia("(pointer: coarse)").matches;
  var options = {
    responsive: true,
    displaylogo: false,
    displayModeBar: isTouched ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d", "toImage"],
  };
  document.querySelectorAll("[data-chart]").forEach(function (place) {
    var figure = figures[place.dataset.chart];
    if (isTouched) {
      figure.layout.dragmode = false; // a finger scrolls the page
    }
    Plotly.newPlot(place, figure.data, figure.layout, options);
  });

  // The root of a wide tree is what comes into view first.
  document.querySelectorAll("svg.tree").forEach(function (tree) {
    tree.parentElement.scrollLeft = Number(tree.dataset.root) - tree.parentElement.clientWidth / 2;
  });

  // Only what can be scrolled is a stop of the keyboard's; what is folded has no width yet, and stays one.
  document.querySelectorAll(".scroll").forEach(function (part) {
    if (part.clientWidth > 0 && part.scrollWidth <= part.clientWidth) {
      part.removeAttribute("tabindex");
    }
  });

  // What is folded is printed too.
  var folded = [];
  window.addEventListener("beforeprint", function () {
    folded = Array.from(document.querySelectorAll("details:not([open])"));
    folded.forEach(function (part) { part.open = true; });
  });
  window.addEventListener("afterprint", function () {
    folded.forEach(function (part) { part.open = false; });
  });
})();

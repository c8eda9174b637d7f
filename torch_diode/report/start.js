// Everything once; what depends on the width again when that changes.

drawSummary();
drawRegretNotes();
drawTimesTools();
drawWorst();
drawMapTools();
drawSlices();
startLookup();

const drawn = new Map();
const observer = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const width = target.clientWidth;
    if (drawn.get(target) === width) continue;
    drawn.set(target, width);
    ({ "regret-chart": drawRegret, "times-chart": drawTimes, "map-chart": drawMap })[target.id]();
  }
});
for (const id of ["regret-chart", "times-chart", "map-chart"]) observer.observe(at(id));

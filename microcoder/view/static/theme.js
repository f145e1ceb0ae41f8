// Before the first paint: the theme that was chosen here, or that of the system.
(() => {
  let kept = null;
  try { kept = localStorage.getItem('microcoder-theme'); } catch { /* a browser may keep nothing */ }
  const dark = kept ? kept === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
})();

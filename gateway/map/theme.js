// Sets the theme before the first paint: a classic script, because modules wait for the whole page.
{
    const chosen = localStorage.getItem("nearcast-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}

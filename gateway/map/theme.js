// Sets the theme before the first paint: a classic script, because modules wait for the whole page.
{
    const chosen = localStorage.getItem("nearcast-theme");
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    document.documentElement.dataset.theme = chosen ?? system;
}

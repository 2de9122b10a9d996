"""Figures whose numbers are those of the command: drawn on axes of matplotlib, in the same look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _style
from ._numbers import compared, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

#: Panels beside each other, at most.
_ACROSS = 4


def _grid(ax: Any, n: int, across: int, size: tuple[float, float]) -> list[Any]:
    """As many axes as panels: within the place of those given, or in a new figure."""
    plt = _style.pyplot()
    across = max(1, min(across, n))
    down = -(-n // across)
    if ax is None:
        figure = plt.figure(figsize=(size[0] * across, size[1] * down), layout="constrained")
        axes = figure.subplots(down, across, squeeze=False).ravel()
    else:
        ax.set_axis_off()
        figure = ax.figure
        axes = np.array([figure.add_subplot(place) for place in _places(ax, down, across)])
    for spare in axes[n:]:
        spare.set_axis_off()
    return list(axes[:n])


def _places(ax: Any, down: int, across: int) -> list[Any]:
    spec = ax.get_subplotspec()
    if spec is None:
        raise ValueError("axes for several panels must be those of a grid, as plt.subplots makes them")
    inner = spec.subgridspec(down, across)
    return [inner[i, k] for i in range(down) for k in range(across)]


def _component(n: dict[str, Any], k: int) -> str:
    """How an axis names a component: with its share, where it has one."""
    word = n.get("component_word", "component")
    share = n.get("shares") or []
    name = f"{word} {n['components'][k]}"
    return f"{name} ({_style.percent(share[k])})" if k < len(share) and share[k] is not None else name


@_style.documented
def loadings(estimator: Any, *, components: Sequence[int] = (), ax: Any = None) -> Any:
    """Loadings as bars, with 95 % intervals where the fit has them (`BayesianPCA`).

    Parameters
    ----------
    {model or Imputer}
    components : sequence of int, default=()
        Which, from 1; the first ones if none.
    {ax}

    {panels}
        A panel for each component.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> len(plot.loadings(PPCA(n_components=2).fit(X)))
    2
    """
    n = numbers("loadings", estimator, components=components)
    names, cells = n["columns"], n["loadings"]
    axes = _grid(ax, len(n["components"]), _ACROSS, (2.8, 1.0 + 0.22 * len(names)))
    for k, panel in enumerate(axes):
        blue, orange = _style.hues(panel)
        values = np.array([row[k]["value"] for row in cells])
        ends = [row[k].get("interval") for row in cells]
        sure = [end is None or end[0] > 0.0 or end[1] < 0.0 for end in ends]
        bars = panel.barh(np.arange(len(names)), values, color=np.where(values < 0.0, orange, blue))
        for bar, certain, end, i in zip(bars, sure, ends, range(len(names)), strict=True):
            bar.set_alpha(1.0 if certain else 0.35)
            if end is not None:
                panel.plot(end, [i, i], color=_style.mixed(panel, 0.9), linewidth=1.0)
        first = k % min(_ACROSS, len(axes)) == 0
        panel.set_yticks(np.arange(len(names)), [_style.plain(_style.short(name)) for name in names] if first else [])
        panel.set_ylim(len(names) - 0.5, -0.5)
        panel.axvline(0.0, color=_style.mixed(panel, 0.4), linewidth=0.8)
        panel.tick_params(length=0)
        _style.panel(panel, _component(n, k), "loading (sd of the column)", "top", "right", "left")
    return axes


@_style.documented
def relevance(estimator: Any, *, ax: Any = None) -> Any:
    """The relevance α of each component on a logarithmic scale; those that were dropped have none.

    Parameters
    ----------
    estimator : fitted estimator
        A model whose prior drops components, such as `BayesianPCA`.
    {ax}

    {drawn}
    """
    n = numbers("relevance", estimator)
    ax = _style.axes(ax, (5.0, 3.4))
    kept = [alpha for alpha in n["alpha"] if alpha is not None]
    ax.semilogy(np.arange(1, len(kept) + 1), kept, "o-", color=_style.hues(ax)[0], markersize=5, linewidth=1.0)
    ax.set_xlim(0.5, n["n_offered"] + 0.5)
    ax.axvline(len(kept) + 0.5, color=_style.hues(ax)[1], linestyle="--", linewidth=1.0)
    kept_of = f"{len(kept)} of {n['n_offered']} components are kept"
    return _style.finish(ax, "component, in order of decreasing variance", "relevance α", kept_of)


@_style.documented
def trace(*estimators: Any, ax: Any = None) -> Any:
    """How far the objective was from its final value after each step, on a logarithmic scale.

    Parameters
    ----------
    *estimators : fitted estimators
        One or more.
    {ax}

    {drawn}
    """
    fits = [(estimator, numbers("trace", estimator)["fits"][0]) for estimator in estimators]
    ax = _style.axes(ax, (5.0, 3.4))
    for k, (estimator, fit) in enumerate(fits):
        values = np.asarray(fit["values"], dtype=np.float64)
        left = values[-1] - values[:-1]
        shown = np.where(left > 0.0, left, np.nan)
        label = f"{type(estimator).__name__} ({fit['method']})"
        ax.semilogy(np.arange(1, len(shown) + 1), shown, color=_style.palette(ax)[k % 7], linewidth=1.4, label=label)
    if len(fits) > 1:
        ax.legend(frameon=False, fontsize="small")
    return _style.finish(ax, "step", "distance from the final value (nats)")


def _ellipse(ax: Any, of: dict[str, Any], color: Any) -> None:
    from matplotlib.patches import Ellipse

    # Angles are counted against the clock, as matplotlib does.
    ax.add_patch(
        Ellipse(of["center"], 2.0 * of["half"][0], 2.0 * of["half"][1], angle=of["angle"], fill=False, color=color)
    )


def _points(ax: Any, points: list[dict[str, Any]], groups: list[str], key: str, title: str | None) -> None:
    """Rows: groups by color and shape, those with missing values hollow."""
    palette = _style.palette(ax)
    of = [None, *range(len(groups))] if groups else [None]
    for g in of:
        some = [p for p in points if p.get(key) == g]
        if not some:
            continue
        color = _style.mixed(ax, 0.45) if g is None and groups else palette[(g or 0) % len(palette)]
        marker = _style.MARKERS[(g or 0) % len(_style.MARKERS)]
        label = None if not groups else "(missing)" if g is None else _style.plain(_style.short(groups[g]))
        for hollow in (False, True):
            at = [p for p in some if (p["n_gaps"] > 0) == hollow]
            if at:
                face = "none" if hollow else color
                ax.scatter(
                    [p["x"] for p in at], [p["y"] for p in at], s=20, marker=marker, facecolors=face,
                    edgecolors=color, linewidths=1.0, label=label,
                )  # fmt: skip
                label = None
    if groups:
        ax.legend(frameon=False, fontsize="small", title=title, loc="upper left", bbox_to_anchor=(1.0, 1.0))


@_style.documented
def scores(
    estimator: Any,
    X: ArrayLike,
    *,
    components: tuple[int, int] = (1, 2),
    color: Any = None,
    labels: Any = None,
    ax: Any = None,
) -> Any:
    """Scores of the rows on two components: ellipses of groups, hollow marks where values are missing.

    More than 4000 rows are counted in hexagons; one component is a density above a rug.

    Parameters
    ----------
    {model or Imputer}
    {rows}
    components : tuple of two int, default=(1, 2)
        Which, from 1.
    color : array-like of shape (n_samples,) or None, default=None
        Group of each row.
    labels : array-like of shape (n_samples,) or None, default=None
        Name of each row.
    {ax}

    {drawn}
    """
    n = numbers("scores", estimator, X, components=components, color=color, labels=labels)
    ax = _style.axes(ax, (5.6, 5.0))
    ax.set_xlabel(_component(n, 0))
    _style.despine(ax)
    if n["densities"]:
        for of in n["densities"]:
            at, height = np.array(of["curve"]).T
            group = of["group"]
            name = None if group is None else _style.plain(n["groups"][group])
            ax.plot(at, height, color=_style.palette(ax)[(group or 0) % 7], label=name)
        ax.plot([p["x"] for p in n["points"]], np.zeros(len(n["points"])), "|", color=_style.mixed(ax, 0.5))
        ax.set_ylabel("density")
        if n["groups"]:
            ax.legend(frameon=False, fontsize="small", title=n["color_by"])
        return ax
    ax.set_ylabel(_component(n, 1))
    if n["hexagons"] is not None:
        x, y, count = np.array(n["hexagons"]["cells"]).T
        from matplotlib.colors import LogNorm

        drawn = ax.scatter(x, y, c=count, s=14, marker="h", cmap="Blues", norm=LogNorm(), linewidths=0)
        ax.figure.colorbar(drawn, ax=ax, label="rows per hexagon", shrink=0.6)
        return ax
    _points(ax, n["points"], n["groups"], "group", n["color_by"])
    for of in n["group_ellipses"]:
        _ellipse(ax, of, _style.palette(ax)[of["group"] % 7])
    named = sorted((p for p in n["points"] if p.get("label")), key=lambda p: -np.hypot(p["x"], p["y"]))
    for p in named[:25]:
        ax.annotate(_style.plain(_style.short(p["label"])), (p["x"], p["y"]), fontsize="x-small", xytext=(4, 3),
                    textcoords="offset points", color=_style.mixed(ax, 0.7))  # fmt: skip
    return ax


@_style.documented
def pairs(estimator: Any, X: ArrayLike, *, components: Sequence[int] = (), color: Any = None, ax: Any = None) -> Any:
    """Scores on up to five components, each pair in a panel, densities on the diagonal.

    Parameters
    ----------
    estimator, X, color
        As of :func:`scores`.
    components : sequence of int, default=()
        Which, from 1; the first ones if none.
    {ax}

    {panels}
        The panels, row by row: the densities, and below the diagonal the pairs.
    """
    n = numbers("pairs", estimator, X, components=components, color=color)
    q = len(n["components"])
    axes = _grid(ax, q * q, q, (2.1, 2.0))
    order = iter(n["pairs"])
    for i in range(q):
        for k in range(q):
            panel = axes[i * q + k]
            panel.tick_params(labelsize="x-small")
            _style.despine(panel)
            if k > i:
                panel.set_axis_off()
            elif k == i:
                for of in n["densities"][i]:
                    at, height = np.array(of["curve"]).T
                    panel.plot(at, height, color=_style.palette(panel)[(of["group"] or 0) % 7], linewidth=1.2)
                panel.set_yticks([])
                panel.set_title(f"component {n['components'][i]}", fontsize="small", loc="left")
            else:
                pair = next(order)
                _points(panel, pair["points"], pair["groups"], "group", pair["color_by"])
                if (legend := panel.get_legend()) is not None and not (i == q - 1 and k == i - 1):
                    legend.remove()
    return axes


def _heat(ax: Any, values: Any, names: list[str], largest: float, title: str) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    blue, orange = _style.hues(ax)
    colors: Any = [orange, _style.ground(ax), blue]
    shades = LinearSegmentedColormap.from_list("signs", colors)
    drawn = ax.imshow(values, cmap=shades, vmin=-largest, vmax=largest)
    shown = [_style.plain(_style.short(name)) for name in names]
    ax.set_xticks(np.arange(len(names)), shown, rotation=90, fontsize="x-small")
    ax.set_yticks(np.arange(len(names)), shown, fontsize="x-small")
    ax.set_title(title, fontsize="small", loc="left")
    ax.tick_params(length=0)
    _style.despine(ax, "top", "right", "left", "bottom")
    return drawn


@_style.documented
def covariance(estimator: Any, X: ArrayLike, *, ax: Any = None) -> Any:
    """Covariances of the table, of the model, and the difference, in standard deviations of the columns.

    Parameters
    ----------
    {model}
    {table}
    {ax}

    {panels}
        Observed, model, difference.
    """
    n = numbers("covariance", estimator, X)
    observed, fitted = np.array(n["data"], dtype=np.float64), np.array(n["fitted"], dtype=np.float64)
    axes = _grid(ax, 3, 3, (4.2, 4.2))
    largest = float(np.nanmax(np.abs([observed, fitted])))
    _heat(axes[0], observed, n["columns"], largest, "observed")
    drawn = _heat(axes[1], fitted, n["columns"], largest, "model")
    axes[1].figure.colorbar(drawn, ax=axes[:2], shrink=0.6)
    difference = observed - fitted
    drawn = _heat(axes[2], difference, n["columns"], float(np.nanmax(np.abs(difference))) or 1.0, "observed − model")
    axes[2].figure.colorbar(drawn, ax=axes[2], shrink=0.6)
    for panel in axes[1:]:
        panel.set_yticks([])
    return axes


@_style.documented
def samples(estimator: Any, X: ArrayLike, *, random_state: int = 0, ax: Any = None) -> Any:
    """Marginal distributions of simulated and observed rows, column by column.

    Parameters
    ----------
    {model}
    {table}
    random_state : int, default=0
        Seed of the simulated rows.
    {ax}

    {panels}
        A panel for each column.
    """
    n = numbers("samples", estimator, X, seed=random_state)
    axes = _grid(ax, len(n["columns"]), _ACROSS, (2.4, 1.7))
    for panel, c in zip(axes, n["columns"], strict=True):
        low, high = c["range"]
        edges = np.linspace(low, high, len(c["real"]) + 1)
        panel.stairs(c["real"], edges, fill=True, color=_style.hues(panel)[0], alpha=0.4, label="observed")
        panel.stairs(c["drawn"], edges, color=_style.hues(panel)[1], linewidth=1.4, label="simulated")
        _bare(panel, c["column"])
    axes[0].legend(frameon=False, fontsize="x-small")
    return axes


def _bare(panel: Any, name: str) -> None:
    """A small panel with a name and an axis of values."""
    panel.set_yticks([])
    _style.panel(panel, _style.plain(_style.short(name, 28)), "", "top", "right", "left")


@_style.documented
def density(estimator: Any, X: ArrayLike, *, ax: Any = None) -> Any:
    """For each column the density of observed values and the mean of the predictive densities of missing ones.

    Parameters
    ----------
    {model or Imputer}
    X : array-like of shape (n_samples, n_features)
        The table, with missing values.
    {ax}

    {panels}
        A panel for each column.
    """
    n = numbers("density", estimator, X)
    axes = _grid(ax, len(n["columns"]), _ACROSS, (2.4, 1.7))
    for panel, c in zip(axes, n["columns"], strict=True):
        blue, orange = _style.hues(panel)
        for what, color, dash in (("observed", blue, "-"), ("imputed", orange, "--")):
            at, height = np.array(c[what]).T
            panel.plot(at, height, dash, color=color, linewidth=1.4, label=what)
        panel.set_ylim(bottom=0.0)
        _bare(panel, c["column"])
    axes[0].legend(frameon=False, fontsize="x-small")
    return axes


@_style.documented
def select(X: ArrayLike, *, max_components: int | None = None, random_state: int = 0, ax: Any = None) -> Any:
    """Every criterion over the number of components, and the number that each chooses.

    Parameters
    ----------
    {table}
    max_components : int or None, default=None
        Most components tried.
    random_state : int, default=0
        Seed of the hidden cells.
    {ax}

    {panels}
        A panel for each criterion, then the choices.
    """
    n = compared(X, max_components, random_state)
    axes = _grid(ax, len(n["curves"]) + 1, 3, (3.2, 2.4))
    for panel, c in zip(axes[:-1], n["curves"], strict=True):
        values = np.array([np.nan if v is None else v for v in c["below_best"]], dtype=np.float64)
        errors = c.get("error")
        bars = None if errors is None else np.array([0.0 if e is None else e for e in errors])
        at = np.arange(len(values))
        panel.errorbar(at, values, yerr=bars, fmt="o-", color=_style.hues(panel)[0], markersize=3, linewidth=1.0)
        panel.axvspan(n["recommended"] - 0.3, n["recommended"] + 0.3, color=_style.hues(panel)[0], alpha=0.15)
        _style.panel(panel, f"{c['name']} ({c['unit']} below best)")
    last = axes[-1]
    names = [c["name"] for c in n["choices"]]
    last.plot([c["n_components"] for c in n["choices"]], np.arange(len(names)), "o", color=_style.hues(last)[1])
    last.set_yticks(np.arange(len(names)), names)
    last.set_xlim(-0.5, n["most"] + 0.5)
    last.set_ylim(len(names) - 0.5, -0.5)
    _style.panel(last, "number chosen by each", "components")
    return axes


@_style.documented
def images(estimator: Any, shape: tuple[int, int], X: Any = None, *, ax: Any = None) -> Any:
    """Mean, components and, with `X`, rows and their reconstructions as images on one scale of gray.

    Parameters
    ----------
    {model}
    shape : tuple of two int
        Rows and columns of an image.
    X : array-like of shape (n_samples, n_features) or None, default=None
        Rows.
    {ax}

    {panels}
        The images, line by line.
    """
    n = numbers("images", estimator, X, shape=shape)
    most = max(len(strip["tiles"]) for strip in n["strips"])
    axes = _grid(ax, most * len(n["strips"]), most, (1.2, 1.4))
    gray = [v for s in n["strips"][:1] for t in s["tiles"] for v in t["cells"] if v is not None]
    for line, strip in enumerate(n["strips"]):
        for k in range(most):
            panel = axes[line * most + k]
            panel.set_xticks([])
            panel.set_yticks([])
            if k == 0:
                panel.set_title(strip["name"], fontsize="small", loc="left")
            if k >= len(strip["tiles"]) or not strip["tiles"][k]["cells"]:
                panel.set_axis_off()
                continue
            tile = strip["tiles"][k]
            picture = np.array([np.nan if v is None else v for v in tile["cells"]]).reshape(n["shape"])
            if strip["signed"]:
                _heat(panel, picture, [], float(np.nanmax(np.abs(picture))) or 1.0, panel.get_title(loc="left"))
            else:
                panel.imshow(picture, cmap="gray", vmin=min(gray), vmax=max(gray))
            panel.set_xlabel(tile["caption"], fontsize="x-small")
    return axes


@_style.documented
def views(estimator: Any, *, ax: Any = None) -> Any:
    """What each component explains of each view, and which views share it.

    Parameters
    ----------
    estimator : fitted estimator
        A model of several views: `GroupFactorAnalysis` or `ProbabilisticCCA`.
    {ax}

    {drawn}
    """
    n = numbers("views", estimator)
    shares, active = np.array(n["shares"], dtype=np.float64), np.array(n["active"], dtype=bool)
    ax = _style.axes(ax, (1.8 + 0.7 * shares.shape[1], 1.0 + 0.7 * len(n["views"])))
    from matplotlib.patches import Rectangle

    blue, orange = _style.hues(ax)
    shared = active.sum(axis=0) > 1
    largest = max(float(shares.max()), 1e-300)
    for (v, k), share in np.ndenumerate(shares):
        if not active[v, k]:
            ax.text(k + 1, v, "–", ha="center", va="center", color=_style.mixed(ax, 0.6))
            continue
        side = 0.8 * np.sqrt(share / largest)
        ax.add_patch(Rectangle((k + 1 - side / 2, v - side / 2), side, side, color=blue if shared[k] else orange))
        ax.text(k + 1, v + 0.47, f"{100.0 * share:.0f} %", ha="center", va="center", fontsize="x-small")
    ax.set_xlim(0.4, shares.shape[1] + 0.6)
    ax.set_ylim(len(n["views"]) - 0.3, -0.6)
    ax.set_aspect("equal")
    ax.set_xticks(np.arange(1, shares.shape[1] + 1))
    ax.set_yticks(np.arange(len(n["views"])), [_style.plain(_style.short(name)) for name in n["views"]])
    ax.tick_params(length=0)
    said = "canonical correlations " + ", ".join(f"{r:.2f}" for r in n["correlations"])
    said = said if n["correlations"] else "blue: shared by views; orange: private to one"
    return _style.finish(ax, "component", "", said, sides=("top", "right", "left", "bottom"))


@_style.documented
def sources(estimator: Any, X: ArrayLike, *, ax: Any = None) -> Any:
    """Independent components over the rows, each in its standard deviations.

    Parameters
    ----------
    estimator : fitted estimator
        `InfomaxICA` or `NoisyICA`.
    {rows}
    {ax}

    {panels}
        A panel for each source.
    """
    n = numbers("sources", estimator, X)
    axes = _grid(ax, len(n["sources"]), 1, (7.0, 1.2))
    for k, (panel, source) in enumerate(zip(axes, n["sources"], strict=True)):
        spans = np.array(source["spans"])
        at = np.repeat(np.arange(len(spans)), 2) * n["rows_per_place"] + 1
        panel.plot(at, spans.ravel(), color=_style.hues(panel)[0], linewidth=0.8)
        said = f"source {k + 1}: {_style.percent(source['share'])}, excess kurtosis {source['kurtosis']:.2f}"
        _style.panel(panel, said)
    axes[-1].set_xlabel("row")
    return axes


@_style.documented
def mixture(estimator: Any, X: ArrayLike, *, ax: Any = None) -> Any:
    """Rows of a mixture, or of classes, along the two axes where its models differ most, with 95 % ellipses.

    Parameters
    ----------
    estimator : fitted estimator
        `MixturePPCA`, `GaussianMixture` or `PPCAClassifier`.
    {rows}
    {ax}

    {drawn}
    """
    n = numbers("mixture", estimator, X)
    ax = _style.axes(ax, (5.6, 5.0))
    names = [f"{m['name']}, {_style.percent(m['weight'])}" for m in n["models"]]
    _points(ax, n["points"], names, "model", n["classes_of"])
    for k, model in enumerate(n["models"]):
        _ellipse(ax, model, _style.palette(ax)[k % 7])
    for k, set_label in enumerate((ax.set_xlabel, ax.set_ylabel)):
        of = ", ".join(f"{_style.short(c['column'], 16)} {c['correlation']:.2f}" for c in n["axes"][k])
        set_label(_style.plain(f"axis {k + 1}: {of}"), fontsize="small")
    _style.despine(ax)
    return ax


@_style.documented
def path(estimator: Any, X: ArrayLike, *, ax: Any = None) -> Any:
    """Sparse loadings along the path of penalties; dashed, the penalty of the smallest extended BIC.

    Parameters
    ----------
    estimator : fitted SparsePPCA
        The model.
    X : array-like of shape (n_samples, n_features)
        Its table.
    {ax}

    {panels}
        A panel for each component.
    """
    n = numbers("path", estimator, X)
    axes = _grid(ax, len(n["components"]), 3, (3.4, 3.0))
    best = n["penalties"][int(np.argmin(n["criterion"]))]
    for k, (panel, trails) in enumerate(zip(axes, n["components"], strict=True)):
        kept = sorted((trail for trail in trails if trail["kept"]), key=lambda trail: -trail["loadings"][0])
        reach = max((abs(v) for trail in trails for v in trail["loadings"]), default=1.0)
        heights = _apart([trail["loadings"][0] for trail in kept], 0.07 * reach)
        for trail in trails:
            color: Any = _style.mixed(panel, 0.25)
            if trail["kept"]:
                color = _style.palette(panel)[kept.index(trail) % 7]
            panel.semilogx(n["penalties"], trail["loadings"], color=color, linewidth=1.2 if trail["kept"] else 0.8)
            if trail["kept"]:
                place = (n["penalties"][0], heights[kept.index(trail)])
                panel.annotate(_style.plain(_style.short(trail["column"], 18)), place, fontsize="xx-small",
                               xytext=(3, 0), textcoords="offset points", va="center")  # fmt: skip
        panel.axvline(best, color=_style.hues(panel)[1], linestyle="--", linewidth=1.0)
        panel.invert_xaxis()
        _style.panel(panel, f"component {k + 1}", "penalty λ")
    return axes


def _apart(heights: list[float], least: float) -> list[float]:
    """Falling heights that are at least this far from each other."""
    out: list[float] = []
    for height in heights:
        out.append(min(height, out[-1] - least) if out else height)
    return out


def _band(panel: Any, times: Any, means: Any, sds: Any) -> None:
    means, sds = np.asarray(means), np.asarray(sds)
    color = _style.hues(panel)[0]
    panel.fill_between(times, means - 1.96 * sds, means + 1.96 * sds, color=color, alpha=0.25, linewidth=0)
    panel.plot(times, means, color=color, linewidth=1.4)


@_style.documented
def eigenfunctions(estimator: Any, *, ax: Any = None) -> Any:
    """Mean and eigenfunctions of curves with 95 % bands at each time.

    Parameters
    ----------
    estimator : fitted FunctionalPCA
        The model.
    {ax}

    {panels}
        The mean, then a panel for each component.
    """
    n = numbers("eigenfunctions", estimator)
    axes = _grid(ax, len(n["functions"]), 2, (4.0, 2.4))
    for panel, of in zip(axes, n["functions"], strict=True):
        _band(panel, n["times"], of["values"], of["sds"])
        share = "" if of["share"] is None else f" ({_style.percent(of['share'])})"
        _style.panel(panel, of["name"] + share, _style.plain(n["time"]))
    return axes


@_style.documented
def curves(estimator: Any, X: Any, *, ax: Any = None) -> Any:
    """Twelve curves of the table: points, the curve given them, its 95 % band, the mean of all curves.

    Parameters
    ----------
    estimator : fitted FunctionalPCA
        The model.
    X : frame or array-like
        Its curves, as `fit` takes them.
    {ax}

    {panels}
        A panel for each curve.
    """
    n = numbers("curves", estimator, X)
    axes = _grid(ax, len(n["curves"]), 3, (3.0, 2.0))
    for panel, of in zip(axes, n["curves"], strict=True):
        _band(panel, n["times"], of["means"], of["sds"])
        panel.plot(n["times"], n["mean"], "--", color=_style.mixed(panel, 0.5), linewidth=0.8)
        if of["points"]:
            panel.plot(*np.array(of["points"]).T, "o", color=_style.mixed(panel, 0.9), markersize=3)
        _style.panel(panel, _style.plain(_style.short(of["name"])))
    return axes


@_style.documented
def diagram(estimator: Any, *, least: float = 0.3, ax: Any = None) -> Any:
    """Path diagram of a factor analysis: loadings, correlations of the factors, uniquenesses, statistics of fit.

    Parameters
    ----------
    estimator : fitted FactorAnalysis
        The model.
    least : float, default=0.3
        Loadings below it have no arrow, except for the largest of a column.
    {ax}

    {drawn}
    """
    n = numbers("diagram", estimator)
    q, columns = len(n["correlations"]), n["columns"]
    ax = _style.axes(ax, (6.0, 1.2 + 0.32 * max(len(columns), 2 * q)))
    blue, orange = _style.hues(ax)
    loads = np.array([c["loadings"] for c in columns]).reshape(len(columns), q)
    main = np.argmax(np.abs(loads), axis=1)
    at = np.array([np.mean(np.flatnonzero(main == k)) if (main == k).any() else k for k in range(q)])
    for i, c in enumerate(columns):
        for k in range(q):
            w = loads[i, k]
            if k == main[i] or abs(w) >= least:
                style = {"arrowstyle": "-|>", "color": orange if w < 0.0 else blue, "linewidth": 0.5 + 1.8 * abs(w)}
                ax.annotate("", (2.0, i), (0.45, at[k]), arrowprops=style)
                t = 0.78 if k == main[i] else 0.5
                place = (0.45 + t * 1.55, at[k] + t * (i - at[k]))
                ax.text(*place, f"{w:.2f}", fontsize="x-small", ha="center", va="center",
                        bbox={"facecolor": _style.ground(ax), "edgecolor": "none", "pad": 0.5})  # fmt: skip
        box = {"facecolor": _style.ground(ax), "edgecolor": _style.mixed(ax, 0.6)}
        ax.text(2.05, i, _style.plain(_style.short(c["name"])), va="center", fontsize="small", bbox=box)
        ax.text(3.6, i, f"{c['uniqueness']:.2f}", va="center", fontsize="small", color=_style.mixed(ax, 0.6))
    for k in range(q):
        circle = {"boxstyle": "circle,pad=0.5", "facecolor": _style.ground(ax), "edgecolor": _style.mixed(ax, 0.9)}
        ax.text(0.25, at[k], str(k + 1), ha="center", va="center", bbox=circle)
        for other in range(k + 1, q):
            r = n["correlations"][k][other]
            if abs(r) >= 0.1:
                bend = {"arrowstyle": "<|-|>", "connectionstyle": "arc3,rad=0.5", "color": orange if r < 0.0 else blue}
                ax.annotate("", (0.05, at[other]), (0.05, at[k]), arrowprops=bend)
                ax.text(-0.45 - 0.25 * (other - k), (at[k] + at[other]) / 2, f"{r:.2f}", fontsize="x-small", va="center")
    ax.set_xlim(-1.0 - 0.25 * q, 4.0)
    ax.set_ylim(len(columns) - 0.5, -0.7)
    ax.set_axis_off()
    _style.note(ax, *n["fit"])
    return ax


__all__ = [
    "covariance", "curves", "density", "diagram", "eigenfunctions", "images", "loadings", "mixture", "pairs", "path",
    "relevance", "samples", "scores", "select", "sources", "trace", "views",
]  # fmt: skip

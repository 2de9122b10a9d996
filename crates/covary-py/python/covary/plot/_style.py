"""How the figures look: colors for every eye and background, few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Okabe and Ito's colors, which people who confuse some can tell apart.
_OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A8A8A")
#: The same, lighter, for dark backgrounds.
_OKABE_ITO_LIGHT = ("#56B4E9", "#F0894A", "#2FC99F", "#E8A5C9", "#F2C14E", "#A8D8F5", "#B8B8B8")
#: So that groups differ without colors too.
MARKERS = ("o", "^", "s", "D", "v", "P", "X")


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "drawing needs matplotlib: pip install matplotlib (the numbers behind a figure, such as "
            "covary.plot.scree_data, do not)"
        ) from error
    return plt


def axes(ax: Any, figsize: tuple[float, float]) -> Any:
    """The axes to draw on: those given, else those of a new figure."""
    plt = pyplot()
    if ax is not None:
        return ax
    return plt.subplots(figsize=figsize, layout="constrained")[1]


def mixed(ax: Any, share: float) -> tuple[float, float, float]:
    """A color between the background (0) and the text (1)."""
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb

    return _between(ground(ax), to_rgb(rcParams["text.color"]), share)


def ground(ax: Any) -> tuple[float, float, float]:
    """The color behind the axes, if they are transparent that behind the figure."""
    from matplotlib.colors import to_rgb, to_rgba

    own = to_rgba(ax.get_facecolor())
    found = to_rgb(own if own[3] > 0.0 else ax.figure.get_facecolor())
    return (found[0], found[1], found[2])


def hues(ax: Any) -> tuple[str, str]:
    """Blue and orange, lighter on a dark background."""
    return palette(ax)[0], palette(ax)[1]


def palette(ax: Any) -> tuple[str, ...]:
    """Colors of groups, lighter on a dark background."""
    red, green, blue = ground(ax)
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
    return _OKABE_ITO_LIGHT if dark else _OKABE_ITO


def _between(a: Sequence[float], b: Sequence[float], share: float) -> tuple[float, float, float]:
    r, g, b_ = (x + share * (y - x) for x, y in zip(a, b, strict=True))
    return (r, g, b_)


#: What the docstrings of figures have in common, by what stands for it in braces.
_SHARED = {
    "{model}": "estimator : fitted estimator\n        The model.",
    "{model or Imputer}": "estimator : fitted estimator or Imputer\n        The model.",
    "{table}": "X : array-like of shape (n_samples, n_features)\n        The table.",
    "{rows}": "X : array-like of shape (n_samples, n_features)\n        The rows.",
    "{ax}": "ax : matplotlib Axes or None, default=None\n        Where to draw; a new figure if None.",
    "{drawn}": "Returns\n    -------\n    ax : matplotlib Axes\n        Where it was drawn.",
    "{panels}": "Returns\n    -------\n    axes : list of matplotlib Axes",
}
_Figure = TypeVar("_Figure", bound="Callable[..., Any]")


def documented(figure: _Figure) -> _Figure:
    """Completes the docstring of a figure by what all of them say."""
    for name, text in _SHARED.items():
        # Python's option -OO leaves none.
        figure.__doc__ = figure.__doc__ and figure.__doc__.replace(name, text)
    return figure


def finish(ax: Any, x: str = "", y: str = "", *notes: str, sides: Sequence[str] = ()) -> Any:
    """Ends a figure of one panel: what its axes are, what a reader must know, no frame."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    note(ax, *notes)
    despine(ax, *sides)
    return ax


def panel(ax: Any, title: str = "", x: str = "", *sides: str) -> None:
    """Ends one of several panels: all of it small."""
    ax.set_title(title, fontsize="small", loc="left")
    ax.set_xlabel(x, fontsize="small")
    ax.tick_params(labelsize="x-small")
    despine(ax, *sides)


def despine(ax: Any, *sides: str) -> None:
    """Hides sides of the frame; the upper and right one if none is named."""
    for side in sides or ("top", "right"):
        ax.spines[side].set_visible(False)


def note(ax: Any, *lines: str, loc: str = "left") -> None:
    """What a reader must know of the figure, small above it."""
    said = "\n".join(line for line in lines if line)
    if said:
        ax.set_title(said, loc=loc, fontsize="small", color=mixed(ax, 0.75))


def short(name: str, most: int = 22) -> str:
    """A name cut in the middle if it is long."""
    if len(name) <= most:
        return name
    head = (most - 1) * 2 // 3
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"


def percent(share: float) -> str:
    """As people write it."""
    return f"{100.0 * share:.1f} %"


def counted(n: int) -> str:
    """A number with thin spaces between thousands."""
    return f"{n:,}".replace(",", "\u2009")


def plain(name: str) -> str:
    """A name as it is: matplotlib would set what stands between dollars as mathematics."""
    return name.replace("$", r"\$")


def dates(ax: Any, times: Any) -> None:
    """Dates as people write them, where times are dates."""
    if np.asarray(times).dtype.kind == "M":
        import matplotlib.dates

        # Their types are not written down.
        tools: Any = matplotlib.dates
        locator = tools.AutoDateLocator(minticks=3, maxticks=7)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(tools.ConciseDateFormatter(locator))


def alone(here: Any) -> Any:
    """Whether a place has no neighbor that is here, too."""
    padded = np.concatenate([[False], here, [False]])
    return ~padded[:-2] & ~padded[2:]

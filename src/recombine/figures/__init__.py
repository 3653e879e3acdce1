"""Figures: charts with a title, a caption, and one style.

Each kind of figure is a pair of functions. `..._info` computes what is shown, as tables that can be tested; `draw_...`
makes an Altair chart of it. `Figure` holds a chart with its title and caption, shows itself in a notebook, and saves
itself as .html, .png, .svg, .pdf or .json.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.figures.axes import Reference as Reference
    from recombine.figures.base import Figure as Figure
    from recombine.figures.calibration import calibration_info as calibration_info, draw_calibration as draw_calibration
    from recombine.figures.combination_map import (
        combination_map_info as combination_map_info,
        draw_combination_map as draw_combination_map,
    )
    from recombine.figures.computation_graph import (
        computation_graph_info as computation_graph_info,
        draw_computation_graph as draw_computation_graph,
    )
    from recombine.figures.curves import curves_info as curves_info, plot_curves as plot_curves
    from recombine.figures.dots import dots_info as dots_info, draw_dots as draw_dots
    from recombine.figures.episode import (
        EpisodeObject as EpisodeObject,
        draw_episode as draw_episode,
        episode_info as episode_info,
    )
    from recombine.figures.forecast import draw_forecast as draw_forecast, forecast_info as forecast_info
    from recombine.figures.image_grid import draw_image_grid as draw_image_grid, image_grid_info as image_grid_info
    from recombine.figures.layers import decodability_by_layer_info as decodability_by_layer_info
    from recombine.figures.lines import draw_lines as draw_lines, lines_info as lines_info
    from recombine.figures.matrix import draw_matrix as draw_matrix, matrix_info as matrix_info
    from recombine.figures.save import save_figure as save_figure
    from recombine.figures.scatter import draw_scatter as draw_scatter, scatter_info as scatter_info
    from recombine.figures.study import of_runs as of_runs
    from recombine.figures.verdict_forest import (
        draw_verdict_forest as draw_verdict_forest,
        verdict_forest_info as verdict_forest_info,
    )
